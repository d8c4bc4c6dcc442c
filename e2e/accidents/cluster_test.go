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

// binding is the part of tenant.yaml that names the tenant's repository.
func binding(s *subject) string { return fmt.Sprintf(bindingYAML, s.tenant, s.repo.OperatorURL) }

// retained are the texts that report a namespace that was kept after its project because of its claims.
var retained = []string{"paas.kubeop.io/retained", "store-data"}

// purposeAccidents were confirmed or annotated on purpose and regretted later. They do not affect other tenants' deletions.
var purposeAccidents = []accident{
	{
		mistake: "a project is removed, and its deletion is confirmed", on: own,
		outcome: "its apps are deleted; the namespace stays with the claim", recovery: "`git revert`: the claim is mounted again",
		reports: retained, read: output("get namespace $ns -o yaml"), undo: revert, gone: true,
		do: all(remove("$r"), confirm, projectGone),
	},
	{
		mistake: "the confirmation of a shorter list is used for a longer one", on: own,
		outcome: "the longer list is held and needs a new confirmation", recovery: "`git revert`",
		reports: append(held, "$ns/store-data"), read: repository, undo: revert,
		do: func(s *subject) {
			removeNotes(s)
			s.mustReport(repository, held)
			before := &v1alpha1.Repository{}
			s.must(platform.Client.Get(s.t.Context(), client.ObjectKey{Name: s.tenant}, before))
			remove("$r")(s)
			s.mustReport(repository, []string{"$ns/store-data"})
			s.must(platform.ConfirmAs(s.t.Context(), before))
		},
	},
	{
		mistake: "apps are removed with a confirmation, restored, and removed again", on: own,
		outcome: "the second removal is held like the first", recovery: "`git revert`",
		reports: append(held, "note3"), read: repository, undo: revert,
		do: func(s *subject) {
			removeNotes(s)
			confirm(s)
			s.mustReport(output("get configmaps -n $ns --ignore-not-found note0 note3 -o name"), nil)
			s.mustReport(repository, []string{"Succeeded"})
			revert(s)
			s.mustReport(output("get configmaps -n $ns -o name"), []string{"note3"})
			removeNotes(s)
		},
	},
	{
		mistake: "`kubectl delete tenant` with its annotation, while Git declares it", on: own,
		outcome: "it is declared again and gets its namespaces back", recovery: "by itself",
		reports: []string{"Succeeded", "NamespaceAdopted"}, read: each(tenantStatus, events), undo: none, gone: true, newPods: true,
		do: all(kubectl("annotate tenant $t --overwrite paas.kubeop.io/allow-deletion=$t"), kubectl("delete tenant $t --wait=false")),
	},
	{
		mistake: "`kubectl delete project` with its annotation, while Git declares it", on: own,
		outcome: "it is declared again and gets its namespace back", recovery: "by itself",
		reports: []string{"Succeeded", "NamespaceAdopted"}, read: each(project, events), undo: none, gone: true, newPods: true,
		do: all(kubectl("annotate project shop -n $home --overwrite paas.kubeop.io/allow-deletion=shop"), kubectl("delete project shop -n $home --wait=false")),
	},
	{
		mistake: "`kubectl delete namespace` of a project, with its annotation, while Git declares it", on: own,
		outcome: "it is created again, with a new claim; the volume of the old one stays", recovery: "the volume is given to the new claim (docs/data.md)",
		reports: []string{"VolumesRetained", "Succeeded"}, read: each(events, project), newPods: true, newClaims: true,
		do: all(allowNamespace, kubectl("delete namespace $ns --timeout=60s")),
		undo: func(s *subject) {
			s.until("the new claim is bound", s.storeRuns)
			s.release(s.volume())
			kubectl("delete pvc store-data -n $ns --wait=false")(s)
			kubectl("delete pods --all -n $ns --wait=false")(s)
			s.until("the new claim has the volume", s.hasVolume)
		},
	},
	{
		mistake: "a Helm app with an IngressClass and a webhook is removed", on: own,
		outcome: "they are deleted with the app", recovery: "not needed",
		reports: []string{"Succeeded"}, read: repository, undo: none,
		do: func(s *subject) {
			s.commit("Deliver a class", func() {
				s.must(s.repo.Write(s.expand("$r/apps/class/app.yaml"), []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: class}\nspec: {type: Helm, helm: {path: chart}}\n")))
				s.must(s.repo.Write(s.expand("$r/apps/class/chart/Chart.yaml"), []byte("apiVersion: v2\nname: class\nversion: 0.1.0\n")))
				s.must(s.repo.Write(s.expand("$r/apps/class/chart/templates/class.yaml"), []byte(s.expand(classYAML))))
			})
			made := output("get ingressclasses,validatingwebhookconfigurations -o name")
			s.mustReport(made, []string{"ingressclass.networking.k8s.io/$t-class", "validatingwebhookconfiguration.admissionregistration.k8s.io/$t-class"})
			revertFolder(s, "$r/apps/class")
			s.mustNotReport(made, "$t-class")
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
		mistake: "a tenant is removed from the platform repository, and its deletion is confirmed", on: inPlatform,
		outcome: "its apps are deleted; the namespaces stay with their claims", recovery: "`git revert`: the tenant gets its namespaces back",
		reports: retained, read: output("get namespace $ns -o yaml"), undo: revert, gone: true,
		do: all(remove("tenants/$t"), confirm, projectGone),
	},
	{
		mistake: "tenant.yaml of a tenant with a repository of its own is removed, and the deletion is confirmed", on: own,
		outcome: "its apps are deleted; the namespaces stay with their claims", recovery: "`git revert`: the tenant gets its namespaces back",
		reports: retained, read: output("get namespace $ns -o yaml"), undo: revertTenant, gone: true,
		do: func(s *subject) {
			s.inRoot("Remove "+s.tenant, func() { s.must(root.Remove(s.expand("tenants/$t"))) })
			s.confirmIn("platform")
			projectGone(s)
		},
	},
}

// clusterAccidents affect all tenants.
var clusterAccidents = []accident{
	{
		mistake: "`kubectl delete repository platform`, and an app is removed before the Repository exists again", on: inPlatform,
		outcome: "it is declared again; pushes continue, and the app is deleted", recovery: "by itself",
		reports: []string{"Succeeded"}, read: platformRepository, undo: revert,
		do: all(kubectl("delete repository platform --wait=false"), func(s *subject) {
			s.commit("Edit note0, remove note1", func() {
				s.must(root.Write(s.expand("$r/apps/note0/app.yaml"), []byte(strings.Replace(s.good[s.expand("$r/apps/note0/app.yaml")], "hello", "again", 1))))
				s.must(root.Remove(s.expand("$r/apps/note1")))
			})
			s.mustReport(noteText("note0"), []string{"again"})
			s.mustNotReport(output("get configmaps -n $ns -o name"), "note1")
		}),
	},
	{
		mistake: "the operator is killed while a push is delivered", on: own, outcome: "it continues after the restart", recovery: "by itself",
		reports: []string{"Succeeded", "killed"}, read: each(repository, noteText("note0")), undo: revert,
		do: all(edit("$r/apps/note0/app.yaml", "hello", "killed"), killOperator),
	},
	{
		mistake: "the operator's data is lost while the Git host is down", on: own,
		outcome: "what runs stays Ready, with SourceReady=False beside it", recovery: "the Git host comes back",
		reports: []string{"Fetched", "False", "$t.git"}, read: repository,
		do: all(vanish, killOperator, requestReconcile, func(s *subject) {
			time.Sleep(10 * time.Second)
			s.mustReport(output(`get apps.paas.kubeop.io store -n $ns -o jsonpath={.status.conditions[?(@.type=="Ready")].status}`), []string{"True"})
		}),
		undo: all(reappear, requestReconcile),
	},
	{
		mistake: "a project is removed while the operator is down", on: own, outcome: "held when it runs again", recovery: "`git revert`",
		reports: append(held, "$ns/store-data"), read: repository, undo: revert,
		do: all(operatorDown, remove("$r"), operatorUp),
	},
	{
		mistake: "the Git hosts of thirty tenants hang", on: own, outcome: "the pushes of others are applied as usual; the Repositories of the thirty report it", recovery: "not needed",
		reports: []string{"it has not answered", "quick"}, read: each(hanging, noteText("note0")), do: hangingHosts, undo: all(healHosts, revert),
	},
	{
		mistake: "the API server hangs for a minute", on: own, outcome: "the operator continues afterwards, without a restart", recovery: "by itself",
		reports: []string{"Succeeded"}, read: repository, undo: none,
		do: func(s *subject) {
			before := restarts(s)
			s.must(platform.FreezeAPIServer(s.t.Context(), time.Minute))
			operatorReady(s)
			time.Sleep(5 * time.Second)
			s.sameOperator(before)
		},
	},
	{
		mistake: "`kubectl delete crd apps.paas.kubeop.io`, with its annotation", on: own,
		outcome: "every workload keeps running", recovery: "`kubectl apply` of the chart's CRDs: everything is managed again, no pod restarts",
		reports: []string{"LeftRunning", "CustomResourceDefinition apps.paas.kubeop.io is being deleted"}, read: events,
		do: deleteCRDs("apps"), undo: applyCRDs,
	},
	{
		mistake: "`kubectl delete crd tenants.paas.kubeop.io`, with its annotation", on: own,
		outcome: "every namespace and workload stays", recovery: "`kubectl apply` of the chart's CRDs: everything is managed again, no pod restarts",
		reports: []string{"LeftRunning", "CustomResourceDefinition tenants.paas.kubeop.io is being deleted"}, read: events,
		do: deleteCRDs("tenants"), undo: applyCRDs,
	},
	{
		mistake: "all of kubeop's CRDs are deleted, with their annotations", on: inPlatform,
		outcome: "every workload keeps running", recovery: "`kubectl apply` of the chart's CRDs: everything is managed again, no pod restarts",
		reports: []string{"LeftRunning", "is being deleted"}, read: events,
		do: deleteCRDs("tenants", "repositories", "projects", "apps"), undo: applyCRDs,
	},
	{
		mistake: "`helm uninstall kubeop`", on: own,
		outcome: "every workload keeps running", recovery: "`helm install`: everything is managed again, no pod restarts",
		reports: []string{"store"}, read: output("get deployment -n $ns -o name"),
		do: func(s *subject) {
			_, err := platform.Helm(s.t.Context(), "uninstall", "kubeop", "--namespace", "kubeop-system", "--wait", "--timeout", "2m")
			s.must(err)
		},
		undo: func(s *subject) { s.must(install(s.t.Context())) },
	},
}

func removeNotes(s *subject) {
	remove("$r/apps/note0", "$r/apps/note1", "$r/apps/note2", "$r/apps/note3", "$r/apps/note4", "$r/apps/note5")(s)
}

// projectGone waits until the project shop is deleted.
func projectGone(s *subject) { s.mustNotReport(output("get projects -n $home -o name"), "shop") }

// revertFolder removes a folder that was added.
func revertFolder(s *subject, name string) { remove(name)(s) }

func killOperator(s *subject) {
	s.must(platform.KillOperator(s.t.Context()))
	operatorReady(s)
}

func operatorReady(s *subject) {
	kubectl("wait deployment/kubeop -n kubeop-system --for=condition=Available --timeout=120s")(s)
	s.mustNotReport(output("get pods -n kubeop-system -l app.kubernetes.io/name=kubeop -o jsonpath={.items[*].metadata.deletionTimestamp}"), "T")
}

// restarts returns the operator's pod and how often it was restarted.
func restarts(s *subject) string {
	out, err := platform.Kubectl(s.t.Context(), "get", "pods", "-n", "kubeop-system", "-l", "app.kubernetes.io/name=kubeop",
		"-o", "jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount}{end}")
	s.must(err)
	return out
}

// sameOperator checks that the operator's pod was neither replaced nor restarted.
func (s *subject) sameOperator(before string) {
	s.t.Helper()
	if after := restarts(s); after != before {
		s.t.Fatalf("the operator's restarts were %s and are %s\n%s", before, after, platform.OperatorEnd(s.t.Context()))
	}
}

// deleteCRDs deletes definitions of kubeop's kinds at once, each with the annotation that allows it.
func deleteCRDs(kinds ...string) action {
	var actions []action
	command := "delete crd --timeout=60s"
	for _, kind := range kinds {
		name := kind + ".paas.kubeop.io"
		actions = append(actions, kubectl("annotate crd "+name+" --overwrite paas.kubeop.io/allow-deletion="+name))
		command += " " + name
	}
	return all(append(actions, kubectl(command))...)
}

func applyCRDs(s *subject) {
	s.must(platform.ApplyCRDs(s.t.Context()))
	operatorReady(s)
}

// noteText reads the text that a small app has delivered.
func noteText(name string) reader {
	return output("get configmap " + name + " -n $ns --ignore-not-found -o jsonpath={.data.text}")
}

// hosts is the number of Git hosts that hang, and hanging reads the status of the first.
const hosts = 30

func hanging(s *subject) (string, error) { return status(s, &v1alpha1.Repository{}, "", "hang0") }

// hangingHosts adds thirty tenants whose Git host accepts connections but never answers, and measures a push of another tenant.
func hangingHosts(s *subject) {
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
			defer connection.Close() // At the end of the test. Until then it never answers.
		}
	}()
	s.inRoot("Thirty tenants of a host that hangs", func() {
		for n := range hosts {
			name := fmt.Sprintf("hang%d", n)
			s.must(root.Write("tenants/"+name+"/tenant.yaml", fmt.Appendf(nil,
				"apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: %s}\nspec: {repository: {url: 'http://%s/%s.git'}}\n", name, listener.Addr(), name)))
		}
	})
	s.mustReport(output("get repositories -o name"), []string{"hang0", fmt.Sprintf("hang%d", hosts-1)})
	time.Sleep(2 * time.Second)
	edit("$r/apps/note0/app.yaml", "hello", "quick")(s)
	pushed := time.Now()
	s.mustReport(noteText("note0"), []string{"quick"})
	s.t.Logf("a push beside thirty hanging hosts was applied after %.2f s", time.Since(pushed).Seconds())
	if took := time.Since(pushed); took > 5*time.Second {
		s.t.Errorf("it took %s", took)
	}
}

func healHosts(s *subject) {
	s.inRoot("Without them", func() {
		for n := range hosts {
			s.must(root.Remove(fmt.Sprintf("tenants/hang%d", n)))
		}
	})
	s.confirmIn("platform")
	s.mustNotReport(output("get tenants -o name"), "hang")
}

// mustNotReport waits until the text that read returns does not contain the word any more.
func (s *subject) mustNotReport(read reader, word string) {
	s.t.Helper()
	s.untilText("it does not report "+word, read, func(text string) bool { return !strings.Contains(text, s.expand(word)) })
}
