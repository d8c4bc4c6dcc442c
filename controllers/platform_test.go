package controllers

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// newPlatform returns the platform repository as a team: the projects of the platform itself are its projects. There is one in a cluster.
func newPlatform(t *testing.T) *team {
	t.Helper()
	t.Parallel()
	o, err := op()
	if err != nil {
		t.Fatal(err)
	}
	n := &team{operator: o, t: t, name: v1alpha1.PlatformRepository}
	n.repo = env.Repo(t, n.name, "http://"+o.hookAddr+"/hook/"+n.name, "key-of-"+n.name)
	n.secret("platform-git", map[string]string{"username": n.repo.User, "password": n.repo.Password})
	n.secret("platform-hook", map[string]string{"token": "key-of-" + n.name})
	n.create(&v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: n.name}, Spec: v1alpha1.RepositorySpec{
		URL: n.repo.URL, SecretRef: &v1alpha1.LocalSecretReference{Name: "platform-git"}, HookSecretRef: &v1alpha1.LocalSecretReference{Name: "platform-hook"},
	}})
	return n
}

// platformFiles are two apps in the project "edge" of the platform: the Raw app "classes" and the Helm app "router". Each has an object in its
// namespace, one in kube-system and a ClusterRole, all of the app's name.
func platformFiles() map[string]string {
	object := func(kind, namespace, name, more string) string {
		if namespace != "" {
			namespace = ", namespace: " + namespace
		}
		return "apiVersion: " + kind + "\nmetadata: {name: " + name + namespace + "}\n" + more
	}
	const role = "rbac.authorization.k8s.io/v1\nkind: "
	objects := func(name string) []string {
		return []string{
			object("networking.k8s.io/v1\nkind: NetworkPolicy", "", name, "spec: {podSelector: {}}\n"),
			object(role+"Role", "kube-system", name, "rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: ['*']}]\n"),
			object(role+"ClusterRole", "", name, "rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]\n"),
		}
	}
	raw := "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: classes}\nspec:\n  type: Raw\n  raw:\n    manifests:\n"
	for _, o := range objects("classes") {
		raw += "    - " + strings.ReplaceAll(strings.TrimSpace(o), "\n", "\n      ") + "\n"
	}
	const router = "platform/edge/apps/router/"
	return map[string]string{
		"platform/edge/project.yaml":              fmt.Sprintf(projectFile, "edge") + "spec: {namespace: {podSecurity: privileged}}\n",
		"platform/edge/apps/classes/app.yaml":     raw,
		router + "app.yaml":                       "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: router}\nspec: {type: Helm, helm: {path: chart}}\n",
		router + "chart/Chart.yaml":               chartFile,
		router + "chart/templates/templates.yaml": strings.Join(objects("router"), "---\n"),
	}
}

// placed checks whether the objects of an app of the platform exist.
func (n *team) placed(name string, want bool) {
	n.t.Helper()
	objects := map[string]client.Object{"edge": &networkingv1.NetworkPolicy{}, "kube-system": &rbacv1.Role{}, "": &rbacv1.ClusterRole{}}
	for namespace, o := range objects {
		n.eventually(func() error {
			err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
			if there := err == nil; client.IgnoreNotFound(err) != nil || there != want {
				return fmt.Errorf("%T %s/%s: there %t, want %t: %w", o, namespace, name, there, want, err)
			}
			return nil
		})
		if want && o.GetLabels()[v1alpha1.TenantLabel] != v1alpha1.PlatformTenant {
			n.t.Errorf("%T %s/%s has the labels %v", o, namespace, name, o.GetLabels())
		}
	}
}

// TestThePlatformRepository declares a tenant whose projects are kept in the platform repository, and apps of the platform itself.
func TestThePlatformRepository(t *testing.T) {
	n := newPlatform(t)
	files := platformFiles()
	files["tenants/hosted/tenant.yaml"] = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: hosted}\nspec: {owners: [{kind: User, name: lead, role: admin}]}\n"
	for name, content := range shopFiles("shop", "web") {
		files["tenants/hosted/"+name] = content
	}
	n.push(maps.Clone(files))

	hosted := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-hosted-shop", Name: "web"}}
	n.ready(n.repository(), hosted)
	if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-hosted-shop", Name: "web"}, &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	admins := &rbacv1.RoleBinding{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-hosted-shop", Name: "kubeop-admin"}, admins); err != nil {
		t.Fatal(err)
	}
	if len(admins.Subjects) != 1 || admins.Subjects[0].Name != "lead" {
		t.Errorf("admins are %v", admins.Subjects)
	}

	n.ready(n.app("edge", "classes"), n.app("edge", "router"))
	n.placed("classes", true)
	n.placed("router", true)
	edge := &corev1.Namespace{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Name: "edge"}, edge); err != nil {
		t.Fatal(err)
	}
	if level := edge.Labels["pod-security.kubernetes.io/enforce"]; level != "privileged" {
		t.Errorf("the namespace enforces %q", level)
	}
	n.platformIsForTheOperator()
	n.allOfAPlatformReleaseCounts(files)
	for _, level := range []string{"baseline", "privileged"} {
		n.push(map[string]string{"platform/edge/project.yaml": fmt.Sprintf(projectFile, "edge") + "spec: {namespace: {podSecurity: " + level + "}}\n"})
		n.enforces("edge", level)
	}

	for _, app := range []string{"classes", "router"} {
		n.push(map[string]string{"platform/edge/apps/" + app: "-"})
		n.gone(n.app("edge", app))
		n.placed(app, false)
	}
	n.push(map[string]string{"platform/edge": "-"})
	n.gone(&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-platform", Name: "edge"}})
	n.adoptNamespace()
	n.policiesAreDeclared()
}

// allOfAPlatformReleaseCounts changes and deletes objects of the Helm app "router" outside of its namespace, which are corrected, and replaces
// one by an object of the administrators, which is not. Then it delivers one that does not become healthy.
func (n *team) allOfAPlatformReleaseCounts(files map[string]string) {
	n.t.Helper()
	const app, templates = "platform/edge/apps/router/app.yaml", "platform/edge/apps/router/chart/templates/templates.yaml"
	n.synced(n.push(map[string]string{app: strings.Replace(files[app], "spec: {", "spec: {drift: {mode: Correct}, ", 1)}), metav1.ConditionTrue)
	n.ready(n.app("edge", "router")) // Only the change of the Role makes kubeop look at the app again.
	role := &rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "router"}}
	n.edit(role, `{"rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]}]}`)
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
			return err
		}
		if verb := role.Rules[0].Verbs[0]; verb != "*" {
			return fmt.Errorf("the verb of the Role in kube-system is still %s", verb)
		}
		return nil
	})
	cluster := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "router"}}
	if err := n.admin.Delete(n.t.Context(), cluster); err != nil {
		n.t.Fatal(err)
	}
	n.placed("router", true)

	if err := n.admin.Delete(n.t.Context(), cluster); err != nil {
		n.t.Fatal(err)
	}
	theirs := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "router"}}
	switch err := n.admin.Create(n.t.Context(), theirs); {
	case apierrors.IsAlreadyExists(err): // The operator was faster.
	case err != nil:
		n.t.Fatal(err)
	default:
		n.reconcile(n.app("edge", "router"))
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || len(theirs.Rules)+len(theirs.Labels) > 0 {
			n.t.Errorf("the administrators' ClusterRole was changed: %v, %v", theirs, err)
		}
		if err := n.admin.Delete(n.t.Context(), theirs); err != nil {
			n.t.Fatal(err)
		}
		n.reconcile(n.app("edge", "router")) // Nothing says that their object is in the place of the app's.
	}
	n.placed("router", true)

	elsewhere := strings.Replace(fmt.Sprintf(usualDeployment, "elsewhere"), "{name: elsewhere}", "{name: elsewhere, namespace: default}", 1)
	n.push(map[string]string{templates: files[templates] + "---\n" + strings.Replace(elsewhere, "replicas: 0", "replicas: 1", 1)})
	if why := n.until(n.app("edge", "router"), v1alpha1.HealthyCondition, metav1.ConditionUnknown, ""); !strings.Contains(why, "Deployment/elsewhere") {
		n.t.Errorf("the app waits for %q", why)
	}
	n.push(map[string]string{templates: files[templates]})
	n.ready(n.app("edge", "router"))
}

// platformIsForTheOperator tries to write an App into a namespace of the platform with all rights there.
func (n *team) platformIsForTheOperator() {
	n.t.Helper()
	n.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "intern"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "intern"}},
	})
	intern := n.as("intern")
	n.denied(func() error {
		return intern.Create(n.t.Context(), n.object("edge", fmt.Sprintf(rawFile, "mine", "mine", "hello")))
	}, "PlatformApps: App/mine is in namespace edge", "declare it in platform/ of the platform repository")
	n.denied(func() error {
		app := n.app("edge", "classes")
		app.APIVersion, app.Kind = v1alpha1.GroupVersion.String(), v1alpha1.AppKind
		return intern.Patch(n.t.Context(), app, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":true}}`)))
	}, "PlatformApps: App/classes")
}

// enforces waits until a namespace has a Pod Security level.
func (n *team) enforces(namespace, level string) {
	n.t.Helper()
	ns := &corev1.Namespace{}
	n.eventually(func() error {
		err := n.admin.Get(n.t.Context(), client.ObjectKey{Name: namespace}, ns)
		if got := ns.Labels["pod-security.kubernetes.io/enforce"]; err == nil && got != level {
			err = fmt.Errorf("namespace %s enforces %q, want %q", namespace, got, level)
		}
		return err
	})
}

// adoptNamespace has a project take over a namespace that exists, and leave it again.
func (n *team) adoptNamespace() {
	n.t.Helper()
	n.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "legacy", Labels: map[string]string{"team": "old"}}})
	n.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "legacy", Name: "theirs"}})
	n.create(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "legacy-data"}, Spec: pvOf("legacy", "data")})
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-platform", Name: "legacy"}}
	n.push(map[string]string{
		"platform/legacy/project.yaml":       fmt.Sprintf(projectFile, "legacy"),
		"platform/legacy/apps/note/app.yaml": strings.ReplaceAll(rawApp(plain("note"), claim)["app.yaml"], "name: bad", "name: note"),
	})
	why := n.until(project, v1alpha1.NamespaceReadyCondition, metav1.ConditionFalse, v1alpha1.NamespaceTakenReason)
	if !strings.Contains(why, "set spec.namespace.adopt: true in project.yaml") {
		n.t.Errorf("the message is %s", why)
	}
	n.push(map[string]string{"platform/legacy/project.yaml": fmt.Sprintf(projectFile, "legacy") + "spec: {claimDeletionPolicy: Delete, namespace: {adopt: true}}\n"})
	n.ready(project, n.app("legacy", "note"))
	n.push(map[string]string{"platform/legacy/project.yaml": fmt.Sprintf(projectFile, "legacy") + "spec: {claimDeletionPolicy: Delete, namespace: {adopt: true, podSecurity: baseline}}\n"})
	n.enforces("legacy", "baseline")
	foreign := n.bound("legacy", "foreign")
	n.denied(func() error {
		return n.self.Delete(n.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "legacy"}})
	}, "TenantsOnly: Namespace/legacy existed before the project")
	// Without the label that says so, kubeop does not take the namespace for its own.
	n.edit(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "legacy"}},
		`{"metadata": {"labels": {"`+v1alpha1.AdoptedLabel+`": null}}}`)
	n.reconcile(project)

	n.push(map[string]string{"platform/legacy": "-"})
	token := n.held("PersistentVolumeClaim legacy/data: 1Mi, is deleted with its data", "PersistentVolumeClaim legacy/foreign: 1Gi, stays", "Project kubeop-platform/legacy: with 1 namespace, 1 app")
	n.there(project, n.app("legacy", "note"))
	n.confirm(token)
	n.gone(project, n.app("legacy", "note"), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "legacy", Name: "data"}})
	n.there(foreign)
	legacy := &corev1.Namespace{}
	if err := errors.Join(
		n.admin.Get(n.t.Context(), client.ObjectKey{Name: "legacy"}, legacy),
		n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: "legacy", Name: "theirs"}, &corev1.ConfigMap{}),
	); err != nil {
		n.t.Fatal(err)
	}
	if legacy.DeletionTimestamp != nil || legacy.Labels["team"] != "old" || legacy.Labels[v1alpha1.TenantLabel] != "" {
		n.t.Errorf("the adopted namespace is left with %v, deleted at %v", legacy.Labels, legacy.DeletionTimestamp)
	}
	n.gone(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "legacy", Name: v1alpha1.Deployer}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "legacy", Name: "note"}})
}

// TestATenantCannotReachThePlatform tries to declare what only the platform repository may, and to use the account of the platform's apps.
func TestATenantCannotReachThePlatform(t *testing.T) {
	n := newTeam(t, "outsider")
	files := shopFiles("shop", "web")
	files["platform/edge/project.yaml"] = fmt.Sprintf(projectFile, "edge")
	files["projects/open/project.yaml"] = fmt.Sprintf(projectFile, "open") + "spec: {namespace: {adopt: true, podSecurity: privileged}}\n"
	revision := n.push(files)
	n.ready(n.app("shop", "web"))
	n.synced(revision, metav1.ConditionFalse)
	for _, want := range []string{
		"platform/edge/project.yaml: nothing is read from here",
		"projects/open/project.yaml:5:8: spec.namespace: only projects of the platform itself, in platform/<project>/ of the platform repository, may set it",
	} {
		if problems := n.problemsOf(revision); !strings.Contains(problems, want) {
			t.Errorf("the problems lack %q:\n%s", want, problems)
		}
	}
	const account, object = "kubeop-platform-deployer", "projects/shop/apps/bad/app.yaml"
	for manifest, want := range map[string]string{
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: " + account + "}}":                                      "the platform's own ServiceAccounts start with kubeop-",
		"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {serviceAccountName: " + account + ", " + podSpec + "}}": "would run as service account " + account,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kubeop-system}}":                               "is for namespace kubeop-system; this app's is kubeop-outsider-shop",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {paas.kubeop.io/tenant: platform}}}":              "carries paas.kubeop.io/tenant",
		"{apiVersion: v1, kind: Namespace, metadata: {name: edge, labels: {paas.kubeop.io/tenant: platform}}}":           "is cluster-scoped",
		"{apiVersion: paas.kubeop.io/v1alpha1, kind: App, metadata: {name: a, namespace: kubeop-platform}, spec: {}}":    "kubeop's own objects belong in the tenant's repository",
	} {
		n.push(map[string]string{object: "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: bad}\nspec: {type: Raw, raw: {manifests: [" + manifest + "]}}\n"})
		if why := n.until(n.app("shop", "bad"), v1alpha1.AllowedCondition, metav1.ConditionFalse, v1alpha1.NotAllowedReason); !strings.Contains(why, want) {
			n.eventually(func() error {
				if why := n.until(n.app("shop", "bad"), v1alpha1.AllowedCondition, metav1.ConditionFalse, v1alpha1.NotAllowedReason); !strings.Contains(why, want) {
					return fmt.Errorf("%s: the message lacks %q: %s", manifest, want, why)
				}
				return nil
			})
		}
	}
}
