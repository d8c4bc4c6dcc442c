//go:build e2e

package accidents

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// binding is the end of the tenant's file that names its repository.
func binding(s *scene) string { return fmt.Sprintf(bindingYAML, s.tenant, s.repo.OperatorURL) }

// retained are the words of a namespace that outlived its project because of its claims.
var retained = []string{"paas.kubeop.io/retained", "store-data"}

// purposeAccidents were confirmed, or marked, and are regretted afterwards. They concern nobody else's deletions.
var purposeAccidents = []accident{
	{
		slip: "a project is removed, and its deletion is confirmed", on: own,
		fate: "its apps are deleted; the namespace stays with the claim", mend: "`git revert`: the claim is mounted again",
		says: retained, place: output("get namespace $ns -o yaml"), back: revert, gone: true,
		do: all(remove("$r"), confirm, projectGone),
	},
	{
		slip: "the confirmation of a shorter list is used for a longer one", on: own,
		fate: "the longer list is held and needs a new confirmation", mend: "`git revert`",
		says: append(held, "$ns/store-data"), place: repository, back: revert,
		do: func(s *scene) {
			removeNotes(s)
			s.says(repository, held)
			before := &v1alpha1.Repository{}
			s.must(platform.Client.Get(s.t.Context(), client.ObjectKey{Name: s.tenant}, before))
			remove("$r")(s)
			s.says(repository, []string{"$ns/store-data"})
			s.must(platform.ConfirmAs(s.t.Context(), before))
		},
	},
	{
		slip: "apps are removed with a confirmation, restored, and removed again", on: own,
		fate: "the second removal is held like the first", mend: "`git revert`",
		says: append(held, "note3"), place: repository, back: revert,
		do: func(s *scene) {
			removeNotes(s)
			confirm(s)
			s.says(output("get configmaps -n $ns --ignore-not-found note0 note3 -o name"), nil)
			s.says(repository, []string{"Succeeded"})
			revert(s)
			s.says(output("get configmaps -n $ns -o name"), []string{"note3"})
			removeNotes(s)
		},
	},
	{
		slip: "`kubectl delete tenant` with its annotation, while Git declares it", on: own,
		fate: "it is declared again and gets its namespaces back", mend: "by itself",
		says: []string{"Succeeded", "NamespaceAdopted"}, place: each(tenantStatus, events), back: none, gone: true, newPods: true,
		do: all(kubectl("annotate tenant $t --overwrite paas.kubeop.io/allow-deletion=$t"), kubectl("delete tenant $t --wait=false")),
	},
	{
		slip: "`kubectl delete project` with its annotation, while Git declares it", on: own,
		fate: "it is declared again and gets its namespace back", mend: "by itself",
		says: []string{"Succeeded", "NamespaceAdopted"}, place: each(project, events), back: none, gone: true, newPods: true,
		do: all(kubectl("annotate project shop -n $home --overwrite paas.kubeop.io/allow-deletion=shop"), kubectl("delete project shop -n $home --wait=false")),
	},
	{
		slip: "`kubectl delete namespace` of a project, with its annotation, while Git declares it", on: own,
		fate: "it is created again, with a new claim; the volume of the old one stays", mend: "the volume is given to the new claim (docs/data.md)",
		says: []string{"VolumesRetained", "Succeeded"}, place: each(events, project), newPods: true, newClaims: true,
		do: all(allowNamespace, kubectl("delete namespace $ns --timeout=60s")),
		back: func(s *scene) {
			s.until("the new claim is bound", s.running)
			s.release(s.volume())
			kubectl("delete pvc store-data -n $ns --wait=false")(s)
			kubectl("delete pods --all -n $ns --wait=false")(s)
			s.until("the new claim has the volume", s.hasVolume)
		},
	},
	{
		slip: "a Helm app with an IngressClass and a webhook is removed", on: own,
		fate: "they are deleted with the app", mend: "not needed",
		says: []string{"Succeeded"}, place: repository, back: none,
		do: func(s *scene) {
			s.commit("Deliver a class", func() {
				s.must(s.repo.Write(s.expand("$r/apps/class/app.yaml"), []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: class}\nspec: {type: Helm, helm: {path: chart}}\n")))
				s.must(s.repo.Write(s.expand("$r/apps/class/chart/Chart.yaml"), []byte("apiVersion: v2\nname: class\nversion: 0.1.0\n")))
				s.must(s.repo.Write(s.expand("$r/apps/class/chart/templates/class.yaml"), []byte(s.expand(classYAML))))
			})
			made := output("get ingressclasses,validatingwebhookconfigurations -o name")
			s.says(made, []string{"ingressclass.networking.k8s.io/$t-class", "validatingwebhookconfiguration.admissionregistration.k8s.io/$t-class"})
			revertFolder(s, "$r/apps/class")
			s.silent(made, "$t-class")
		},
	},
}

const classYAML = `apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: $t-class}
spec: {controller: example.com/none}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: $t-class}
webhooks:
- name: class.example.com
  clientConfig: {service: {namespace: $ns, name: none}}
  rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [things]}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`

// confirmedAccidents confirm deletions of the platform repository, where other accidents would be confirmed with them.
var confirmedAccidents = []accident{
	{
		slip: "a tenant is removed from the platform repository, and its deletion is confirmed", on: inPlatform,
		fate: "its apps are deleted; the namespaces stay with their claims", mend: "`git revert`: the tenant gets its namespaces back",
		says: retained, place: output("get namespace $ns -o yaml"), back: revert, gone: true,
		do: all(remove("tenants/$t"), confirm, projectGone),
	},
	{
		slip: "tenant.yaml of a tenant with a repository of its own is removed, and the deletion is confirmed", on: own,
		fate: "its apps are deleted; the namespaces stay with their claims", mend: "`git revert`: the tenant gets its namespaces back",
		says: retained, place: output("get namespace $ns -o yaml"), back: revertTenant, gone: true,
		do: func(s *scene) {
			s.inRoot("Remove "+s.tenant, func() { s.must(root.Remove(s.expand("tenants/$t"))) })
			s.confirmIn("platform")
			projectGone(s)
		},
	},
}

// clusterAccidents happen to everybody at once.
var clusterAccidents = []accident{
	{
		slip: "`kubectl delete repository platform`, and an app is removed before the Repository exists again", on: inPlatform,
		fate: "it is declared again; pushes continue, and the app is deleted", mend: "by itself",
		says: []string{"Succeeded"}, place: platformRepository, back: revert,
		do: all(kubectl("delete repository platform --wait=false"), func(s *scene) {
			s.commit("Edit note0, remove note1", func() {
				s.must(root.Write(s.expand("$r/apps/note0/app.yaml"), []byte(strings.Replace(s.good[s.expand("$r/apps/note0/app.yaml")], "hello", "again", 1))))
				s.must(root.Remove(s.expand("$r/apps/note1")))
			})
			s.says(noteText("note0"), []string{"again"})
			s.silent(output("get configmaps -n $ns -o name"), "note1")
		}),
	},
	{
		slip: "the operator is killed while a push is delivered", on: own, fate: "it continues after the restart", mend: "by itself",
		says: []string{"Succeeded", "killed"}, place: each(repository, noteText("note0")), back: revert,
		do: all(edit("$r/apps/note0/app.yaml", "hello", "killed"), killOperator),
	},
	{
		slip: "the operator's data is lost while the Git host is down", on: own,
		fate: "what runs stays Ready, with SourceReady=False beside it", mend: "the Git host comes back",
		says: []string{"Fetched", "False", "$t.git"}, place: repository,
		do: all(vanish, killOperator, ask, func(s *scene) {
			time.Sleep(10 * time.Second)
			s.says(output(`get apps.paas.kubeop.io store -n $ns -o jsonpath={.status.conditions[?(@.type=="Ready")].status}`), []string{"True"})
		}),
		back: all(reappear, ask),
	},
	{
		slip: "a project is removed while the operator is down", on: own, fate: "held when it runs again", mend: "`git revert`",
		says: append(held, "$ns/store-data"), place: repository, back: revert,
		do: all(operatorDown, remove("$r"), operatorUp),
	},
	{
		slip: "the Git hosts of thirty tenants hang", on: own, fate: "the pushes of others are applied as usual; the Repositories of the thirty report it", mend: "not needed",
		says: []string{"it has not answered", "quick"}, place: each(hanging, noteText("note0")), do: hangingHosts, back: all(healHosts, revert),
	},
	{
		slip: "the API server hangs for a minute", on: own, fate: "the operator continues afterwards, without a restart", mend: "by itself",
		says: []string{"Succeeded"}, place: repository, back: none,
		do: func(s *scene) {
			before := restarts(s)
			s.must(platform.FreezeAPIServer(s.t.Context(), time.Minute))
			operatorReady(s)
			time.Sleep(5 * time.Second)
			s.sameOperator(before)
		},
	},
	{
		slip: "`kubectl delete crd apps.paas.kubeop.io`, with its annotation", on: own,
		fate: "every workload keeps running", mend: "`kubectl apply` of the chart's CRDs: everything is managed again, no pod restarts",
		says: []string{"LeftRunning", "CustomResourceDefinition apps.paas.kubeop.io is being deleted"}, place: events,
		do: deleteCRDs("apps"), back: applyCRDs,
	},
	{
		slip: "`kubectl delete crd tenants.paas.kubeop.io`, with its annotation", on: own,
		fate: "every namespace and workload stays", mend: "`kubectl apply` of the chart's CRDs: everything is managed again, no pod restarts",
		says: []string{"LeftRunning", "CustomResourceDefinition tenants.paas.kubeop.io is being deleted"}, place: events,
		do: deleteCRDs("tenants"), back: applyCRDs,
	},
	{
		slip: "all of kubeop's CRDs are deleted, with their annotations", on: inPlatform,
		fate: "every workload keeps running", mend: "`kubectl apply` of the chart's CRDs: everything is managed again, no pod restarts",
		says: []string{"LeftRunning", "is being deleted"}, place: events,
		do: deleteCRDs("tenants", "repositories", "projects", "apps"), back: applyCRDs,
	},
	{
		slip: "`helm uninstall kubeop`", on: own,
		fate: "every workload keeps running", mend: "`helm install`: everything is managed again, no pod restarts",
		says: []string{"store"}, place: output("get deployment -n $ns -o name"),
		do: func(s *scene) {
			_, err := platform.Helm(s.t.Context(), "uninstall", "kubeop", "--namespace", "kubeop-system", "--wait", "--timeout", "2m")
			s.must(err)
		},
		back: func(s *scene) { s.must(install(s.t.Context())) },
	},
}

func removeNotes(s *scene) {
	remove("$r/apps/note0", "$r/apps/note1", "$r/apps/note2", "$r/apps/note3", "$r/apps/note4", "$r/apps/note5")(s)
}

// projectGone waits until the project shop is deleted.
func projectGone(s *scene) { s.silent(output("get projects -n $home -o name"), "shop") }

// revertFolder removes a folder that was added.
func revertFolder(s *scene, name string) { remove(name)(s) }

func killOperator(s *scene) {
	s.must(platform.KillOperator(s.t.Context()))
	operatorReady(s)
}

func operatorReady(s *scene) {
	kubectl("wait deployment/kubeop -n kubeop-system --for=condition=Available --timeout=120s")(s)
	s.silent(output("get pods -n kubeop-system -l app.kubernetes.io/name=kubeop -o jsonpath={.items[*].metadata.deletionTimestamp}"), "T")
}

// restarts tells which pod the operator is and how often it was restarted.
func restarts(s *scene) string {
	out, err := platform.Kubectl(s.t.Context(), "get", "pods", "-n", "kubeop-system", "-l", "app.kubernetes.io/name=kubeop",
		"-o", "jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount}{end}")
	s.must(err)
	return out
}

// sameOperator checks that neither the operator's pod nor its process is another one.
func (s *scene) sameOperator(before string) {
	s.t.Helper()
	if after := restarts(s); after != before {
		s.t.Fatalf("the operator's restarts were %s and are %s\n%s", before, after, platform.OperatorEnd(s.t.Context()))
	}
}

// deleteCRDs deletes definitions of kubeop's kinds at once, each with its mark.
func deleteCRDs(kinds ...string) act {
	var acts []act
	command := "delete crd --timeout=60s"
	for _, kind := range kinds {
		name := kind + ".paas.kubeop.io"
		acts = append(acts, kubectl("annotate crd "+name+" --overwrite paas.kubeop.io/allow-deletion="+name))
		command += " " + name
	}
	return all(append(acts, kubectl(command))...)
}

func applyCRDs(s *scene) {
	s.must(platform.ApplyCRDs(s.t.Context()))
	operatorReady(s)
}

// noteText is what a small app has delivered.
func noteText(name string) where {
	return output("get configmap " + name + " -n $ns --ignore-not-found -o jsonpath={.data.text}")
}

// hosts are how many Git hosts hang, and hanging is the status of the first.
const hosts = 30

func hanging(s *scene) (string, error) { return status(s, &v1alpha1.Repository{}, "", "hang0") }

// hangingHosts adds thirty tenants whose Git host accepts connections and says nothing, and times a push beside them.
func hangingHosts(s *scene) {
	git, err := url.Parse(platform.GitURL())
	s.must(err)
	listener, err := net.Listen("tcp", net.JoinHostPort(git.Hostname(), "0"))
	s.must(err)
	s.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			defer connection.Close() // When all is over; until then nothing is said.
		}
	}()
	s.inRoot("Thirty tenants of a host that hangs", func() {
		for n := range hosts {
			name := fmt.Sprintf("hang%d", n)
			s.must(root.Write("tenants/"+name+"/tenant.yaml", fmt.Appendf(nil,
				"apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: %s}\nspec: {repository: {url: 'http://%s/%s.git'}}\n", name, listener.Addr(), name)))
		}
	})
	s.says(output("get repositories -o name"), []string{"hang0", fmt.Sprintf("hang%d", hosts-1)})
	time.Sleep(2 * time.Second)
	edit("$r/apps/note0/app.yaml", "hello", "quick")(s)
	pushed := time.Now()
	s.says(noteText("note0"), []string{"quick"})
	s.t.Logf("a push beside thirty hanging hosts was applied after %.2f s", time.Since(pushed).Seconds())
	if took := time.Since(pushed); took > 5*time.Second {
		s.t.Errorf("it took %s", took)
	}
}

func healHosts(s *scene) {
	s.inRoot("Without them", func() {
		for n := range hosts {
			s.must(root.Remove(fmt.Sprintf("tenants/hang%d", n)))
		}
	})
	s.confirmIn("platform")
	s.silent(output("get tenants -o name"), "hang")
}

// silent waits until a place does not say something any more.
func (s *scene) silent(place where, word string) {
	s.t.Helper()
	s.untilText("it does not say "+word, place, func(text string) bool { return !strings.Contains(text, s.expand(word)) })
}
