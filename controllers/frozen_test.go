package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
)

const icedShop = "kubeop-iced-shop"

// iced returns a tenant that administrators froze, with a project, in which a person of each role and an account of an app have rights.
func iced(t *testing.T) *team {
	n := newTeam(t, "iced")
	const rights = "{apiGroups: [%s], resources: [%s], verbs: [get, list, create, update, patch, delete]}"
	all := fmt.Sprintf(rights, `""`, "configmaps, pods, secrets, events") + ", " + fmt.Sprintf(rights, "coordination.k8s.io", "leases")
	files := shopFiles("shop", "web")
	files["projects/shop/apps/bad/app.yaml"] = rawApp(
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: bot}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: bot}, rules: ["+all+"]}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: bot}, subjects: [{kind: ServiceAccount, name: bot, namespace: "+icedShop+"}], "+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: bot}}",
	)["app.yaml"]
	for name, content := range shopFiles("doomed", "old") {
		files[name] = content
	}
	n.push(files)
	n.ready(n.app("shop", "web"), n.app("shop", "bad"), n.app("doomed", "old"))
	n.own(v1alpha1.Owner{Kind: rbacv1.UserKind, Name: "iced-edit", Role: "edit"}, v1alpha1.Owner{Kind: rbacv1.UserKind, Name: "iced-admin", Role: "admin"})
	n.create(n.object(icedShop, "{apiVersion: v1, kind: Pod, metadata: {name: pod}, spec: {"+podSpec+"}}"))
	n.create(n.object(icedShop, "{apiVersion: v1, kind: ConfigMap, metadata: {name: state}, data: {a: b}}"))
	n.create(n.object(icedShop, "{apiVersion: v1, kind: Secret, metadata: {name: keys}}"))
	n.create(n.object(icedShop, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: work}, spec: {replicas: 0, selector: {matchLabels: {x: z}}, template: {metadata: {labels: {x: z}}, spec: {"+podSpec+"}}}}"))
	n.writersOfTheCluster("system:node:iced", "system:serviceaccount:default:iced-platform", "system:kube-controller-manager", "iced-outsider", "iced-boss",
		"system:serviceaccount:kubeop-icedtea-shop:bot", "system:serviceaccount:kubeop-iced-doomed:bot", "system:serviceaccount:"+icedShop+":kubeop-access-edit")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Frozen = true })
	return n
}

// writersOfTheCluster gives users the right to write ConfigMaps everywhere, and the user "iced-boss" that to update Tenants.
func (n *team) writersOfTheCluster(users ...string) {
	n.t.Helper()
	bind := func(name, rule string, subjects ...rbacv1.Subject) {
		n.create(n.object("", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+name+"}, rules: ["+rule+"]}"))
		n.create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}})
	}
	var subjects []rbacv1.Subject
	for _, user := range users {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
	}
	bind("iced-writer", "{apiGroups: [''], resources: [configmaps], verbs: ['*']}", subjects...)
	bind("iced-boss", "{apiGroups: [paas.kubeop.io], resources: [tenants], verbs: [update]}", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "iced-boss"})
}

// connects requests a connection to the pod, as kubectl exec, attach and port-forward do.
func (n *team) connects(user, subresource string) func() error {
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		n.t.Fatal(err)
	}
	return func() error {
		return c.CoreV1().RESTClient().Post().Namespace(icedShop).Resource("pods").Name("pod").SubResource(subresource).Param("command", "id").Do(n.t.Context()).Error()
	}
}

// TestOnlyAdministratorsWriteInTheNamespacesOfAFrozenTenant sends requests as everyone who has rights there.
func TestOnlyAdministratorsWriteInTheNamespacesOfAFrozenTenant(t *testing.T) {
	n := iced(t)
	message := n.until(&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iced"}}, v1alpha1.FrozenCondition, metav1.ConditionTrue, v1alpha1.FrozenReason)
	if !strings.Contains(message, "removes spec.frozen from tenant.yaml") {
		t.Errorf("the Tenant says %q", message)
	}
	n.until(&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-iced", Name: "shop"}}, v1alpha1.FrozenCondition, metav1.ConditionTrue, v1alpha1.FrozenReason)
	n.until(n.app("shop", "web"), v1alpha1.FrozenCondition, metav1.ConditionTrue, v1alpha1.FrozenReason)
	account := "system:serviceaccount:" + icedShop + ":"
	configMap := func(text string) client.Object {
		return n.object(icedShop, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+text+"}}")
	}
	creates := func(user string, o client.Object) func() error {
		return func() error {
			return n.as(user).Create(t.Context(), o.DeepCopyObject().(client.Object), client.DryRunAll)
		}
	}
	patches := func(user, kind, name, patch string) func() error {
		o := n.object(icedShop, "{apiVersion: "+kind+", metadata: {name: "+name+"}}")
		return func() error { return n.as(user).Patch(t.Context(), o.DeepCopy(), merging(patch), client.DryRunAll) }
	}
	deletes := func(user, kind, name string) func() error {
		o := n.object(icedShop, "{apiVersion: "+kind+", metadata: {name: "+name+"}}")
		return func() error { return n.as(user).Delete(t.Context(), o, client.DryRunAll) }
	}
	const note = `{"metadata":{"labels":{"role":"leader"},"annotations":{"leader":"a"}}}`
	repository := func(key, value string) func() error {
		return func() error {
			return n.as("iced-admin").Patch(t.Context(), n.repository(), annotated(key, value), client.DryRunAll)
		}
	}
	for name, tc := range map[string]struct {
		try  func() error
		want string // "" if it is allowed.
	}{
		"an owner deletes a pod":           {deletes("iced-edit", "v1, kind: Pod", "pod"), "Frozen: DELETE of pods pod is refused: tenant iced is frozen"},
		"an owner runs a command in a pod": {n.connects("iced-edit", "exec"), "Frozen: CONNECT of pods/exec pod"},
		"an owner attaches to a pod":       {n.connects("iced-edit", "attach"), "Frozen: CONNECT of pods/attach pod"},
		"an owner forwards a port":         {n.connects("iced-edit", "portforward"), "Frozen: CONNECT of pods/portforward pod"},
		"an owner scales":                  {func() error { return n.scales("iced-edit") }, "Frozen: UPDATE of deployments/scale work"},
		"an owner requests something of an app": {func() error {
			return n.as("iced-edit").Patch(t.Context(), n.app("shop", "web"), annotated(requestedAt, "1"), client.DryRunAll)
		}, "Frozen: UPDATE of apps web"},
		"an owner writes a Secret":                    {creates("iced-admin", n.object(icedShop, "{apiVersion: v1, kind: Secret, metadata: {name: x}}")), "Frozen: CREATE of secrets"},
		"an owner writes a Secret in the home":        {creates("iced-admin", n.object("kubeop-iced", "{apiVersion: v1, kind: Secret, metadata: {name: x}}")), "Frozen: CREATE of secrets"},
		"an owner deletes a Secret":                   {deletes("iced-admin", "v1, kind: Secret", "keys"), "Frozen: DELETE of secrets keys"},
		"an owner fetches the repository":             {repository(requestedAt, "1"), ""},
		"an owner suspends the repository":            {repository(v1alpha1.SuspendAnnotation, "2030-01-31T18:00:00Z"), "Frozen: Repository/iced"},
		"an owner confirms a deletion":                {repository(v1alpha1.ConfirmAnnotation, "x"), "Frozen: Repository/iced"},
		"an owner confirms a commit":                  {repository(v1alpha1.ConfirmFreezeAnnotation, "x"), "Frozen: Repository/iced"},
		"an account creates an object":                {creates(account+"bot", configMap("x")), "Frozen: CREATE of configmaps"},
		"an account changes data":                     {patches(account+"bot", "v1, kind: ConfigMap", "state", `{"data":{"a":"c"}}`), "Frozen: UPDATE of configmaps state"},
		"an account changes data and a note":          {patches(account+"bot", "v1, kind: ConfigMap", "state", `{"data":{"a":"c"},"metadata":{"annotations":{"leader":"a"}}}`), "Frozen: UPDATE of configmaps state"},
		"an account adds data":                        {patches(account+"bot", "v1, kind: ConfigMap", "state", `{"binaryData":{"c":"YQ=="}}`), "Frozen: UPDATE of configmaps state"},
		"an account removes data":                     {patches(account+"bot", "v1, kind: ConfigMap", "state", `{"data":null}`), "Frozen: UPDATE of configmaps state"},
		"an account adds a finalizer":                 {patches(account+"bot", "v1, kind: ConfigMap", "state", `{"metadata":{"finalizers":["example.com/x"]}}`), "Frozen: UPDATE of configmaps state"},
		"an account changes a Secret's note":          {patches(account+"bot", "v1, kind: Secret", "keys", note), "Frozen: UPDATE of secrets keys"},
		"an account deletes an object":                {deletes(account+"bot", "v1, kind: ConfigMap", "state"), "Frozen: DELETE of configmaps state"},
		"an account creates a pod":                    {creates(account+"bot", n.object(icedShop, "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {"+podSpec+"}}")), "Frozen: CREATE of pods"},
		"an account changes a pod's image":            {patches(account+"bot", "v1, kind: Pod", "pod", `{"spec":{"activeDeadlineSeconds":60}}`), "Frozen: UPDATE of pods pod"},
		"an account notes a leader in a ConfigMap":    {patches(account+"bot", "v1, kind: ConfigMap", "state", note), ""},
		"an account notes a leader on a pod":          {patches(account+"bot", "v1, kind: Pod", "pod", note), ""},
		"a person notes it by a kubeconfig":           {patches(account+"kubeop-access-edit", "v1, kind: ConfigMap", "state", note), "Frozen: UPDATE of configmaps state"},
		"an account takes a lease":                    {creates(account+"bot", n.object(icedShop, "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: x}}")), ""},
		"an account reports an event":                 {creates(account+"bot", n.object(icedShop, "{apiVersion: v1, kind: Event, metadata: {name: x}, involvedObject: {namespace: "+icedShop+"}}")), ""},
		"an account of another project of the tenant": {creates("system:serviceaccount:kubeop-iced-doomed:bot", configMap("x")), "Frozen: CREATE of configmaps"},
		"an account of a tenant with a similar name":  {creates("system:serviceaccount:kubeop-icedtea-shop:bot", configMap("x")), ""},
		"a person with rights in the whole cluster":   {creates("iced-outsider", configMap("x")), "Frozen: CREATE of configmaps"},
		"an administrator":                            {creates("iced-boss", configMap("x")), ""},
		"the deployer":                                {creates(account+v1alpha1.Deployer, configMap("x")), ""},
		"a node":                                      {creates("system:node:iced", configMap("x")), ""},
		"the controller manager":                      {creates("system:kube-controller-manager", configMap("x")), ""},
		"a controller of the platform":                {creates("system:serviceaccount:default:iced-platform", configMap("x")), ""},
		"the garbage collector":                       {deletes("system:serviceaccount:kube-system:generic-garbage-collector", "v1, kind: ConfigMap", "state"), ""},
		"the ReplicaSet controller":                   {creates("system:serviceaccount:kube-system:replicaset-controller", n.object(icedShop, "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {"+podSpec+"}}")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.want == "" {
				n.passes(tc.try)
				return
			}
			n.denied(tc.try, tc.want, "spec.frozen", "in Git")
		})
	}
	t.Run("administrators delete what is frozen", n.administratorsDeleteWhatIsFrozen)
	t.Run("drift is corrected, and the tenant thaws", n.aFrozenTenantIsLookedAfterAndThaws)
}

// scales sets the replicas of the Deployment, as kubectl scale does.
func (n *team) scales(user string) error {
	work := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: icedShop, Name: "work"}}
	return n.as(user).SubResource("scale").Patch(n.t.Context(), work, merging(`{"spec":{"replicas":1}}`))
}

// administratorsDeleteWhatIsFrozen deletes a project: Kubernetes' controllers empty its namespace, and Git makes it again.
func (n *team) administratorsDeleteWhatIsFrozen(t *testing.T) {
	ns := &corev1.Namespace{}
	key := client.ObjectKey{Name: "kubeop-iced-doomed"}
	if err := n.admin.Get(t.Context(), key, ns); err != nil {
		t.Fatal(err)
	}
	before := ns.UID
	if err := testenv.DeleteOnPurpose(t.Context(), n.admin, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-iced", Name: "doomed"}}, false); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		err := n.admin.Get(context.Background(), key, ns)
		if err == nil && (ns.UID == before || ns.Labels[v1alpha1.FrozenLabel] != "true") {
			err = fmt.Errorf("the namespace is not made again: %s, %v", ns.Status.Phase, ns.Labels)
		}
		return err
	})
	n.ready(n.app("doomed", "old"))
}

// aFrozenTenantIsLookedAfterAndThaws: drift is corrected, a commit waits, and the newest one is applied when administrators end the freeze.
func (n *team) aFrozenTenantIsLookedAfterAndThaws(t *testing.T) {
	web := n.configMap("shop", "web")
	before := web.UID
	if err := n.admin.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(web), web)
		if err == nil && web.UID == before {
			err = fmt.Errorf("the ConfigMap is not made again")
		}
		return err
	})
	n.push(map[string]string{"projects/shop/apps/web/app.yaml": fmt.Sprintf(rawFile, "web", "web", "second")})
	n.until(n.repository(), v1alpha1.AcceptedCondition, metav1.ConditionUnknown, v1alpha1.FrozenReason)
	third := n.push(map[string]string{"projects/shop/apps/web/app.yaml": fmt.Sprintf(rawFile, "web", "web", "third")})
	n.eventually(func() error {
		repository := n.repository()
		err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(repository), repository)
		if err == nil && (repository.Status.HeldRevision != third || repository.Status.HeldUntil != nil) {
			err = fmt.Errorf("held is %q until %v", repository.Status.HeldRevision, repository.Status.HeldUntil)
		}
		return err
	})
	if got := n.configMap("shop", "web").Data["greeting"]; got != "hello" {
		t.Errorf("while it is frozen, the greeting is %q", got)
	}
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Frozen = false })
	n.synced(third, metav1.ConditionTrue)
	n.eventually(func() error {
		if got := n.configMap("shop", "web").Data["greeting"]; got != "third" {
			return fmt.Errorf("the greeting is %q", got)
		}
		return n.as("iced-admin").Create(t.Context(), n.object(icedShop, "{apiVersion: v1, kind: Secret, metadata: {name: x}}"), client.DryRunAll)
	})
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "iced"}}
	n.ready(tenant)
	for _, c := range tenant.Status.Conditions {
		if c.Type == v1alpha1.FrozenCondition || strings.Contains(c.Message, "Frozen") {
			t.Errorf("the Tenant still says %s", c.Message)
		}
	}
}
