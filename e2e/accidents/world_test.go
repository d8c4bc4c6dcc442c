//go:build e2e

package accidents

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kubeop/kubeop/e2e/stage"
)

// ofNamespace are the kinds of which a project's namespace has objects that do not make themselves.
const ofNamespace = "serviceaccounts,roles,rolebindings,resourcequotas,limitranges,networkpolicies,configmaps,persistentvolumeclaims,services,deployments,apps.paas.kubeop.io -n $ns"

// worldAccidents turn back more than kubeop's own objects: backups are restored and clocks are set.
var worldAccidents = []accident{
	{
		slip: "a namespace is deleted, and restored by a tool that drops UIDs and owners", on: own,
		fate: "everything in it is managed again, the claim with its volume", mend: "by itself",
		says: []string{"Succeeded"}, place: each(project, app("store")), back: ask, newPods: true, newClaims: true,
		do: func(s *scene) {
			allowNamespace(s)
			operatorDown(s)
			namespace, saved := s.backUp("namespaces --field-selector metadata.name=$ns"), s.backUp(ofNamespace)
			s.lose(s.backUp("apps.paas.kubeop.io -n $ns"))
			kubectl("delete namespace $ns --timeout=60s")(s)
			for name, c := range s.before.Claims {
				if strings.HasPrefix(name, s.namespace()+"/") {
					s.release(c.Volume)
				}
			}
			s.restore(append(namespace, saved...))
			operatorUp(s)
		},
	},
	{
		slip: "all Tenants, Projects, Apps and Repositories are lost, and restored from a backup older than Git", on: own,
		fate: "every namespace belongs to its tenant again, although the tenant has another UID, and Git's newest commit is applied", mend: "by itself",
		says: []string{"NamespaceAdopted", "Succeeded", "after the backup"}, place: each(events, tenantStatus, app("store"), noteText("note0")), back: all(revert, ask),
		do: func(s *scene) {
			operatorDown(s)
			saved := s.backUp("tenants,repositories,projects,apps.paas.kubeop.io -A")
			s.lose(saved)
			edit("$r/apps/note0/app.yaml", "hello", "after the backup")(s)
			s.restore(saved)
			operatorUp(s)
		},
	},
	clockJumps("five hours ahead", 5*time.Hour),
	clockJumps("50 minutes back", -50*time.Minute), // An hour back the certificates of this new cluster would not be valid yet.
	{
		slip: "etcd is restored from a snapshot older than Git", on: own,
		fate: "the operator ends, and the next one applies what Git declares", mend: "by itself",
		says: []string{"the cluster went back in time", "Kubernetes was restored from a backup"}, back: all(revert, ask),
		place: output("logs deployment/kubeop -n kubeop-system --previous"),
		do: func(s *scene) {
			snapshot := platform.Path("snapshot")
			s.must(platform.SnapshotEtcd(snapshot))
			s.commit("Change note0, remove note5, add note6", func() {
				s.must(s.repo.Write(s.expand("$r/apps/note0/app.yaml"), []byte(strings.Replace(s.good[s.expand("$r/apps/note0/app.yaml")], "hello", "after the snapshot", 1))))
				s.must(s.repo.Remove(s.expand("$r/apps/note5")))
				s.must(s.repo.Write(s.expand("$r/apps/note6/app.yaml"), fmt.Appendf(nil, noteYAML, "note6")))
			})
			atGit := func() {
				s.says(noteText("note0"), []string{"after the snapshot"})
				s.says(noteText("note6"), []string{"hello"})
				s.silent(output("get configmaps -n $ns -o name"), "note5")
			}
			atGit()
			time.Sleep(5 * time.Second) // The lease is renewed.
			s.must(platform.RestoreEtcd(s.t.Context(), snapshot))
			s.says(output("logs deployment/kubeop -n kubeop-system --previous"), []string{"went back in time"})
			operatorReady(s)
			atGit()
		},
	},
}

// clockJumps is the accident that the operator's clock is set off.
func clockJumps(slip string, off time.Duration) accident {
	return accident{
		slip: "the operator's clock jumps " + slip, on: own,
		fate: "pushes are applied as usual, and the operator continues without a restart", mend: "the clock is corrected, which is a jump in the other direction",
		says: []string{"Succeeded", "by another clock"}, place: each(repository, noteText("note0")),
		do: func(s *scene) {
			before := restarts(s)
			s.setClock(off)
			edit("$r/apps/note0/app.yaml", "hello", "by another clock")(s)
			s.says(noteText("note0"), []string{"by another clock"})
			s.sameOperator(before)
		},
		back: func(s *scene) {
			before := restarts(s)
			s.setClock(0)
			revert(s)
			s.says(noteText("note0"), []string{"hello"})
			s.sameOperator(before)
		},
	}
}

// setClock sets the operator's clock off and waits until it shows: the lease is renewed by it.
func (s *scene) setClock(off time.Duration) {
	s.t.Helper()
	s.must(platform.SetOperatorClock(s.t.Context(), off))
	s.until("the lease is renewed by that clock", func(ctx context.Context) error {
		out, err := platform.Kubectl(ctx, "get", "lease", "kubeop-operator", "-n", stage.Namespace, "-o", "jsonpath={.spec.renewTime}")
		if err != nil {
			return err
		}
		renewed, err := time.Parse(time.RFC3339, out)
		if is := time.Until(renewed); err == nil && (is-off).Abs() > 20*time.Second {
			err = fmt.Errorf("it is %s off, not %s", is, off)
		}
		return err
	})
}

// allowNamespace marks the project's namespace to be deleted, and waits until its volumes outlive that.
func allowNamespace(s *scene) {
	kubectl("annotate namespace $ns --overwrite paas.kubeop.io/allow-deletion=$ns")(s)
	s.says(output(`get namespace $ns -o jsonpath={.metadata.annotations.paas\.kubeop\.io/volumes-retained}`), []string{s.volume()})
}
