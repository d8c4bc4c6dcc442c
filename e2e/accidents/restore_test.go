//go:build e2e

package accidents

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kubeop/kubeop/e2e/stage"
)

// ofNamespace are the kinds of a project namespace that no controller recreates, and the Guardrails, without which the API server admits no Services.
const ofNamespace = "guardrails.paas.kubeop.io,serviceaccounts,roles,rolebindings,resourcequotas,limitranges,networkpolicies,configmaps,persistentvolumeclaims,services,deployments,apps.paas.kubeop.io -n $ns"

// restoreAccidents change more than kubeop's own objects: they restore backups and set clocks.
var restoreAccidents = []accident{
	{
		mistake: "a namespace is deleted, and restored by a tool that drops UIDs and owners", on: own,
		outcome: "everything in it is managed again, the claim with its volume", recovery: "by itself",
		reports: []string{"Succeeded"}, read: each(project, app("store")), undo: requestReconcile, newPods: true, newClaims: true,
		do: func(s *subject) {
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
		mistake: "all Tenants, Projects, Apps and Repositories are lost, and restored from a backup older than Git", on: own,
		outcome: "every namespace belongs to its tenant again, although the tenant has another UID, and Git's newest commit is applied", recovery: "by itself",
		reports: []string{"NamespaceAdopted", "Succeeded", "after the backup"}, read: each(events, tenantStatus, app("store"), noteText("note0")), undo: all(revert, requestReconcile),
		do: func(s *subject) {
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
		mistake: "etcd is restored from a snapshot older than Git", on: own,
		outcome: "the operator ends, and the next one applies what Git declares", recovery: "by itself",
		reports: []string{"the cluster went back in time", "Kubernetes was restored from a backup"}, undo: all(revert, requestReconcile),
		read: output("logs deployment/kubeop -n kubeop-system --previous"),
		do: func(s *subject) {
			snapshot := platform.Path("snapshot")
			s.must(platform.SnapshotEtcd(snapshot))
			s.commit("Change note0, remove note5, add note6", func() {
				s.must(s.repo.Write(s.expand("$r/apps/note0/app.yaml"), []byte(strings.Replace(s.good[s.expand("$r/apps/note0/app.yaml")], "hello", "after the snapshot", 1))))
				s.must(s.repo.Remove(s.expand("$r/apps/note5")))
				s.must(s.repo.Write(s.expand("$r/apps/note6/app.yaml"), fmt.Appendf(nil, noteYAML, "note6")))
			})
			atGit := func() {
				s.mustReport(noteText("note0"), []string{"after the snapshot"})
				s.mustReport(noteText("note6"), []string{"hello"})
				s.mustNotReport(output("get configmaps -n $ns -o name"), "note5")
			}
			atGit()
			time.Sleep(5 * time.Second) // The lease is renewed.
			s.must(platform.RestoreEtcd(s.t.Context(), snapshot))
			s.mustReport(output("logs deployment/kubeop -n kubeop-system --previous"), []string{"went back in time"})
			operatorReady(s)
			atGit()
		},
	},
}

// clockJumps is an accident in which the operator's clock jumps.
func clockJumps(change string, off time.Duration) accident {
	return accident{
		mistake: "the operator's clock jumps " + change, on: own,
		outcome: "pushes are applied as usual, and the operator continues without a restart", recovery: "the clock is corrected, which is a jump in the other direction",
		reports: []string{"Succeeded", "by another clock"}, read: each(repository, noteText("note0")),
		do: func(s *subject) {
			before := restarts(s)
			s.setClock(off)
			edit("$r/apps/note0/app.yaml", "hello", "by another clock")(s)
			s.mustReport(noteText("note0"), []string{"by another clock"})
			s.sameOperator(before)
		},
		undo: func(s *subject) {
			before := restarts(s)
			s.setClock(0)
			revert(s)
			s.mustReport(noteText("note0"), []string{"hello"})
			s.sameOperator(before)
		},
	}
}

// setClock sets the operator's clock to an offset and waits until the lease is renewed with it.
func (s *subject) setClock(off time.Duration) {
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

// allowNamespace allows the deletion of the project's namespace and waits until its volumes are set to Retain.
func allowNamespace(s *subject) {
	kubectl("annotate namespace $ns --overwrite paas.kubeop.io/allow-deletion=$ns")(s)
	s.mustReport(output(`get namespace $ns -o jsonpath={.metadata.annotations.paas\.kubeop\.io/volumes-retained}`), []string{s.volume()})
}
