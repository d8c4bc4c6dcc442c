package controllers

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestWithoutTheOperatorsOwnChecksTheAPIServerRefuses pushes an app for each guard, of a tenant whose apps the operator does not judge. The
// API server refuses each object, and the App says what the guard says.
func TestWithoutTheOperatorsOwnChecksTheAPIServerRefuses(t *testing.T) {
	n := newTeam(t, "unjudged")
	files := shopFiles("shop", "web")
	files["projects/shop/project.yaml"] += "spec: {network: {policies: Own}}\n"
	n.push(files)
	n.ready(n.app("shop", "web"))
	n.serveRoutes()
	n.under(everyGuard(t), widerLists)
	for _, name := range []string{"loud-unjudged", "urgent-unjudged"} {
		n.create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1_000})
	}
	n.tenanted(func(s *v1alpha1.TenantSpec) {
		s.Taints, s.PriorityClasses = []string{"gpu"}, []string{"urgent-unjudged"}
	})
	n.reserve("kept.unjudged.example")
	n.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "little"}})
	n.lets("gateways")
	cases := refusedByServer(n.namespace())
	add := func(name string, app map[string]string) {
		for path, text := range app {
			files["projects/shop/apps/"+name+"/"+path] = strings.Replace(text, "\n  name: bad\n", "\n  name: "+name+"\n", 1)
		}
	}
	for name, c := range cases {
		add(name, rawApp(renamed(c.object, name)))
	}
	add("chart", chartApp(renamed(cases["image"].object, "chart")))
	n.push(files)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		c := cases[name]
		where := ""
		if strings.Contains(c.field, ".") {
			where = "spec." + c.field + " of policy"
		}
		n.states(n.app("shop", name), v1alpha1.AppliedCondition, metav1.ConditionFalse, c.words, where)
		object := n.object(n.namespace(), renamed(c.object, name))
		if object.GetKind() == "ClusterRole" {
			object.SetNamespace("")
		}
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%s exists: %v", name, err)
		}
	}
	n.states(n.app("shop", "chart"), v1alpha1.ReleasedCondition, metav1.ConditionFalse, "Images: Pod/chart has the image evil.example/web")
}

// lets gives the project's deployer all rights on kinds of the Gateway API, as administrators may.
func (n *team) lets(resources ...string) {
	n.t.Helper()
	meta := metav1.ObjectMeta{Namespace: n.namespace(), Name: "gateway-api"}
	n.create(&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"gateway.networking.k8s.io", "gateway.networking.x-k8s.io"}, Resources: resources, Verbs: []string{rbacv1.VerbAll}}}})
	n.create(&rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: n.namespace(), Name: v1alpha1.Deployer}},
	})
}

// renamed gives an object that is named x, or kubeop-x, the name of its app.
func renamed(object, app string) string {
	return strings.NewReplacer("{name: x,", "{name: "+app+",", "{name: x}", "{name: "+app+"}", "{name: kubeop-x}", "{name: kubeop-"+app+"}").Replace(object)
}

// notByApps are the rules for all tenants that no app can break, and why.
var notByApps = map[string]string{
	"ControlPlane": "no app has rights on what it is about", "Endpoints": "no app has rights on them", "Frozen": "of a frozen tenant the operator delivers nothing new",
	"Stopped": "it is about what Kubernetes' controllers make", "HomeFinalizer": "no app is in the home of a tenant", "JobByHand": "it is about people", "KubeconfigSecret": "it is about the manager",
}

// TestEveryGuardIsTriedWithoutTheOperatorsOwnChecks: among the objects of the test above is at least one for each rule for all tenants and
// each field of a Policy.
func TestEveryGuardIsTriedWithoutTheOperatorsOwnChecks(t *testing.T) {
	cases := refusedByServer("x")
	tried := func(is func(refusedObject) bool) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(cases)), is)
	}
	for name, file := range tenantsPolicies(t) {
		rules := regexp.MustCompile(`'([A-Z][A-Za-z]+): `).FindAllStringSubmatch(file, -1)
		if len(rules) == 0 {
			t.Errorf("policy %s names no rule", name)
		}
		for _, rule := range rules {
			if _, not := notByApps[rule[1]]; !not && !tried(func(r refusedObject) bool { return strings.HasPrefix(r.words, rule[1]+": ") }) {
				t.Errorf("no object breaks %s of policy %s", rule[1], name)
			}
		}
	}
	for _, field := range fieldsOfPolicies() {
		if !tried(func(r refusedObject) bool { return r.field == field }) {
			t.Errorf("no object breaks spec.%s of a Policy", field)
		}
	}
}

// tenantsPolicies are the files of the policies for what tenants write, by the names of the policies without "kubeop-".
func tenantsPolicies(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../charts/kubeop/policies/tenants/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".yaml")] = string(text)
	}
	return all
}

// fieldsOfPolicies are the fields of a Policy that objects can break: of its rules, such as "images.allow", and its settings, such as
// "quota". The API server does not judge sources, egress is about connections, and the others refuse nothing.
func fieldsOfPolicies() (all []string) {
	name := func(f reflect.StructField) string {
		named, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return named
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[v1alpha1.PolicySpec]()) {
		switch family := name(f); {
		case family == "" || family == "default" || family == "sources" || family == "egress":
		case slices.Contains([]string{"quota", "limits", "podSecurity"}, family):
			all = append(all, family)
		default:
			for _, rule := range reflect.VisibleFields(f.Type.Elem()) {
				if field := name(rule); field != "action" && field != "defaults" && field != "added" {
					all = append(all, family+"."+field)
				}
			}
		}
	}
	return all
}
