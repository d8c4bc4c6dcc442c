package controllers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
)

const operatorAccount = "system:serviceaccount:" + testenv.Namespace + ":kubeop"

// botFiles has an app with an account that has all rights of the deployer: this is how a tenant gets access to the API server.
func botFiles() map[string]string {
	const rights = "{apiGroups: [%s], resources: [%s], verbs: [get, list, create, update, patch, delete]}"
	core := fmt.Sprintf(rights, `""`, "configmaps, services, persistentvolumeclaims, serviceaccounts, pods, secrets")
	rbac := fmt.Sprintf(rights, "rbac.authorization.k8s.io", "roles, rolebindings")
	work := fmt.Sprintf(rights, "apps", "deployments, statefulsets") + ", " + fmt.Sprintf(rights, "batch", "cronjobs")
	files := shopFiles("shop", "web")
	files["projects/shop/apps/bad/app.yaml"] = rawApp(
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: bot}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: bot}, rules: ["+core+", "+rbac+", "+work+"]}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: bot}, subjects: [{kind: ServiceAccount, name: bot}], "+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: bot}}",
	)["app.yaml"]
	// The API server wants a subject's namespace.
	for name, content := range files {
		files[name] = strings.Replace(content, "name: bot}], ", "name: bot, namespace: kubeop-guarded-shop}], ", 1)
	}
	return files
}

// as returns a client that acts as the user.
func (n *team) as(user string) client.Client {
	n.t.Helper()
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{Scheme: n.admin.Scheme(), Mapper: n.admin.RESTMapper()})
	if err != nil {
		n.t.Fatal(err)
	}
	return c
}

// object reads YAML into an object of a namespace.
func (n *team) object(namespace, text string) *unstructured.Unstructured {
	n.t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		n.t.Fatalf("%v in %s", err, text)
	}
	u.SetNamespace(namespace)
	return u
}

// denied retries until a policy refuses the request, because policies and rights take a moment to be in force, and checks that
// the message contains all of want.
func (n *team) denied(try func() error, want ...string) {
	n.t.Helper()
	n.eventually(func() error {
		err := try()
		if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			return errors.Join(errors.New("not denied by a policy"), err)
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				return fmt.Errorf("the message does not contain %q: %w", part, err)
			}
		}
		return nil
	})
}

const (
	podSpec = "containers: [{name: a, image: a, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, " +
		"runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}}]"
	marked   = "labels: {paas.kubeop.io/tenant: road, x: z}"
	template = "template: {metadata: {labels: {x: z}}, spec: {serviceAccountName: kubeop-deployer, " + podSpec + "}}"
	binding  = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, " +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: bot}, subjects: [%s]}"
	tokenSecret = "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, " +
		"metadata: {name: x, annotations: {kubernetes.io/service-account.name: %s}}}"
	// recordSecret is a release record as Helm writes it, with labels of the revision that is filled in.
	recordSecret = "{apiVersion: v1, kind: Secret, type: helm.sh/release.v1, metadata: {%s: sh.helm.release.v1.web.v%s, labels: " +
		"{version: '%s', paas.kubeop.io/release-revision: '%s', %s}}}"
	service     = "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {ports: [{port: 80}]%s}}"
	markedPlace = "{apiVersion: %s, kind: %s, metadata: {name: x}, spec: {%s}}"
)

// guarded returns a tenant with a bot, and the owner "lead" as its admin.
func guarded(t *testing.T) *team {
	n := newTeam(t, "guarded")
	n.push(botFiles())
	n.ready(n.app("shop", "web"), n.app("shop", "bad"))
	n.own(v1alpha1.Owner{Kind: rbacv1.UserKind, Name: "lead", Role: "admin"})
	return n
}

// TestPoliciesRefuseDirectAPICalls tries, as accounts with direct access to the API server, what no app may have, in ways that only they have. What apps
// can try as well is in the cases of package policy.
func TestPoliciesRefuseDirectAPICalls(t *testing.T) {
	n := guarded(t)
	const namespace = "kubeop-guarded-shop"
	bot, lead := n.as("system:serviceaccount:"+namespace+":bot"), n.as("lead")
	place := func(version, kind, spec string) string { return fmt.Sprintf(markedPlace, version, kind, spec) }
	claim := "metadata: {" + marked + "}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
	claims := "volumes: [{name: v, ephemeral: {volumeClaimTemplate: {" + claim + "}}}], " + podSpec
	plain := "selector: {matchLabels: {x: z}}, template: {metadata: {labels: {x: z}}, spec: {" + podSpec + "}}"
	record := func(named, number, version, revision, labels string) string {
		return fmt.Sprintf(recordSecret, named, number, version, revision, labels)
	}
	const digest = "paas.kubeop.io/digest: x"
	deployer := n.as("system:serviceaccount:" + namespace + ":" + v1alpha1.Deployer)
	forged := "metadata: {labels: {x: z, paas.kubeop.io/tenant: guarded, paas.kubeop.io/project: other}}"
	cases := map[string]struct {
		by     client.Client
		object string
		want   []string
	}{
		"another project, by the deployer":         {deployer, strings.Replace("{apiVersion: v1, kind: ConfigMap, "+forged+"}", "{labels", "{name: x, labels", 1), []string{"ForgedMark: ConfigMap/x carries paas.kubeop.io/project"}},
		"pods of another project, by the deployer": {deployer, place("apps/v1", "Deployment", strings.Replace(plain, "metadata: {labels: {x: z}}", forged, 1)), []string{"ForgedMark: Deployment/x carries paas.kubeop.io/project"}},
		"Jobs of another project, by the deployer": {deployer, place("batch/v1", "CronJob", "schedule: '* * * * *', jobTemplate: {"+forged+", spec: {template: {spec: {restartPolicy: Never, "+podSpec+"}}}}"), []string{"ForgedMark: CronJob/x carries paas.kubeop.io/project"}},
		"claims of Jobs, by the deployer":          {deployer, place("batch/v1", "CronJob", "schedule: '* * * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, "+claims+"}}}}"), []string{"ForgedMark: CronJob/x carries paas.kubeop.io/tenant"}},
		"a generated name":                         {bot, "{apiVersion: v1, kind: ServiceAccount, metadata: {generateName: kubeop-}}", []string{"ReservedName: ServiceAccount/kubeop-"}},
		"a token, by an owner":                     {lead, fmt.Sprintf(tokenSecret, "kubeop-deployer"), []string{"PlatformToken: Secret/x", "kubeop-deployer"}},
		"a label, by an owner":                     {lead, "{apiVersion: v1, kind: Secret, metadata: {name: x, " + marked + "}}", []string{"ForgedMark: Secret/x"}},
		"a mark on a release's record":             {lead, record("name", "3", "3", "2", "paas.kubeop.io/tenant: x"), []string{"ForgedMark: Secret/sh.helm.release.v1.web.v3", "paas.kubeop.io/tenant"}},
		"a record in kubeop's own name":            {lead, record("name", "3", "3", "3", digest), []string{"ForgedMark: Secret/sh.helm.release.v1.web.v3", "paas.kubeop.io/"}},
		"a record with another version":            {bot, record("name", "7", "8", "7", digest), []string{"ForgedMark: Secret/sh.helm.release.v1.web.v7"}},
		"a record of a padded revision":            {bot, record("name", "8", "8", "08", digest), []string{"ForgedMark: Secret/sh.helm.release.v1.web.v8"}},
		"a record of a padded name":                {bot, record("name", "09", "8", "9", digest), []string{"ForgedMark: Secret/sh.helm.release.v1.web.v09"}},
		"a record of no number":                    {bot, record("name", "9", "9", "a", digest), []string{"ForgedMark: Secret/sh.helm.release.v1.web.v9"}},
		"a record of a generated name":             {bot, record("generateName", "1", "8", "7", digest), []string{"ForgedMark: Secret/sh.helm.release.v1.web.v1"}},
		"a record named otherwise":                 {bot, strings.Replace(record("name", "8", "8", "7", digest), ".v8", "-8", 1), []string{"ForgedMark: Secret/sh.helm.release.v1.web-8"}},
		"a label of claims of jobs":                {bot, place("batch/v1", "CronJob", "schedule: '* * * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, "+claims+"}}}}"), []string{"ForgedMark: CronJob/x"}},
		"a label of its pods' claims":              {bot, place("apps/v1", "Deployment", strings.Replace(plain, podSpec, claims, 1)), []string{"ForgedMark: Deployment/x"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			n.denied(func() error { return c.by.Create(t.Context(), n.object(namespace, c.object), client.DryRunAll) }, c.want...)
		})
	}
	ordinary := map[string]string{
		"a pod":                place("v1", "Pod", "serviceAccountName: bot, "+podSpec),
		"a Deployment":         place("apps/v1", "Deployment", plain),
		"a record by helm":     record("name", "3", "3", "2", digest+", paas.kubeop.io/app: web"),
		"the next by helm":     record("name", "17", "17", "7", digest),
		"one with no revision": strings.Replace(record("name", "3", "3", "", digest), "paas.kubeop.io/release-revision: '', ", "", 1),
	}
	labelled := "metadata: {labels: {x: z, paas.kubeop.io/tenant: guarded, paas.kubeop.io/project: shop, paas.kubeop.io/app: web}}"
	delivered := n.object(namespace, place("apps/v1", "Deployment", strings.Replace(strings.Replace(plain, "metadata: {labels: {x: z}}", labelled, 1), podSpec,
		strings.Replace(claims, "paas.kubeop.io/tenant: road", "paas.kubeop.io/tenant: guarded", 1), 1)))
	if err := deployer.Create(t.Context(), delivered, client.DryRunAll); err != nil {
		t.Error(err)
	}
	for name, object := range ordinary {
		t.Run(name, func(t *testing.T) {
			if err := bot.Create(t.Context(), n.object(namespace, object), client.DryRunAll); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUpdatesAreHeldToThePolicies changes existing objects: an update may do no more than a creation, and objects that are older
// than the policies can still be changed.
func TestUpdatesAreHeldToThePolicies(t *testing.T) {
	n := newTeam(t, "updated")
	const namespace = "kubeop-updated-shop"
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	n.administered()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bot"}}
	n.create(account)
	// Requests in the operator's name pass, as all did before the policies; here it has an administrator's rights.
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: operatorAccount, Groups: []string{"system:masters"}}
	before, err := client.New(config, client.Options{Scheme: n.admin.Scheme(), Mapper: n.admin.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	old := func(name, text string) *unstructured.Unstructured {
		o := n.object(namespace, text)
		o.SetName(name)
		if err := before.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	copied := fmt.Sprintf(recordSecret, "name", "7", "8", "7", "paas.kubeop.io/digest: x")
	group := fmt.Sprintf(binding, "{apiGroup: rbac.authorization.k8s.io, kind: Group, name: %s}")
	cases := map[string]struct {
		object *unstructured.Unstructured
		patch  string
		// want is part of the denial, empty if the change is allowed.
		want string
	}{
		"a Service gets an IP":           {old("a", fmt.Sprintf(service, "")), `{"spec":{"externalIPs":["10.0.0.1"]}}`, "ExternalService: Service/a"},
		"an external name is changed":    {old("b", fmt.Sprintf(service, ", type: ExternalName, externalName: x.example")), `{"spec":{"externalName":"y.example"}}`, "ExternalService: Service/b"},
		"another IP":                     {old("c", fmt.Sprintf(service, ", externalIPs: [10.0.0.1]")), `{"spec":{"externalIPs":["10.0.0.1","10.0.0.2"]}}`, "ExternalService: Service/c"},
		"an old IP stays":                {old("d", fmt.Sprintf(service, ", externalIPs: [10.0.0.1]")), `{"metadata":{"finalizers":["x.example/y"]}}`, ""},
		"an old name stays":              {old("e", fmt.Sprintf(service, ", type: ExternalName, externalName: x.example")), `{"metadata":{"finalizers":["x.example/y"]}}`, ""},
		"a token gets another account":   {old("f", fmt.Sprintf(tokenSecret, "bot")), `{"metadata":{"annotations":{"kubernetes.io/service-account.name":"kubeop-deployer","kubernetes.io/service-account.uid":null}}}`, "PlatformToken: Secret/f"},
		"a token stays":                  {old("g", fmt.Sprintf(tokenSecret, "bot")), `{"metadata":{"labels":{"a":"b"}}}`, ""},
		"a binding gets a foreign group": {old("h", fmt.Sprintf(group, "people")), `{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"system:authenticated"}]}`, "ForeignSubject: RoleBinding/h"},
		"an old foreign group stays":     {old("i", fmt.Sprintf(group, "system:authenticated")), `{"metadata":{"labels":{"a":"b"}}}`, ""},
		"a label is set":                 {old("j", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"), `{"metadata":{"labels":{"paas.kubeop.io/app":"web"}}}`, "ForgedMark: ConfigMap/j"},
		"a label is changed":             {old("k", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, "+marked+"}}"), `{"metadata":{"labels":{"paas.kubeop.io/tenant":"x"}}}`, "ForgedMark: ConfigMap/k"},
		"a labelled object is changed":   {old("l", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, "+marked+"}}"), `{"data":{"a":"b"}}`, ""},
		"a copy becomes a record":        {old("sh.helm.release.v1.web.v8", copied), `{"metadata":{"labels":{"paas.kubeop.io/release-revision":"8"}}}`, "ForgedMark: Secret/sh.helm.release.v1.web.v8"},
		"a copy becomes one, padded":     {old("sh.helm.release.v1.web.v9", copied), `{"metadata":{"labels":{"paas.kubeop.io/release-revision":"09"}}}`, "ForgedMark: Secret/sh.helm.release.v1.web.v9"},
		"a record's digest is changed":   {old("sh.helm.release.v1.web.v7", copied), `{"metadata":{"labels":{"version":"8","paas.kubeop.io/digest":"y"}}}`, "ForgedMark: Secret/sh.helm.release.v1.web.v7"},
		"a copy is superseded":           {old("sh.helm.release.v1.web.v10", copied), `{"metadata":{"labels":{"status":"superseded","paas.kubeop.io/digest":"y"}}}`, ""},
		"a label is taken away":          {old("m", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, "+marked+"}}"), `{"metadata":{"labels":{"paas.kubeop.io/tenant":null}}}`, ""},
		"the owners' binding is widened": {n.object(namespace, "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: kubeop-admin}}"), `{"metadata":{"labels":{"a":"b"}}}`, "ReservedName: RoleBinding/kubeop-admin"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			patch := func() error {
				return n.admin.Patch(t.Context(), c.object.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(c.patch)), client.DryRunAll)
			}
			if c.want != "" {
				n.denied(patch, c.want)
				return
			}
			if err := patch(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAControllerMakesNoPodOfThePlatform asks for the pod by a template, which a controller turns into a pod.
func TestAControllerMakesNoPodOfThePlatform(t *testing.T) {
	n := newTeam(t, "indirect")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	n.create(n.object("kubeop-indirect-shop", fmt.Sprintf(markedPlace, "apps/v1", "Deployment", "selector: {matchLabels: {x: z}}, "+template)))
	n.eventually(func() error {
		deployment := &appsv1.Deployment{}
		if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-indirect-shop", Name: "x"}, deployment); err != nil {
			return err
		}
		if got := fmt.Sprint(deployment.Status.Conditions); !strings.Contains(got, "PlatformIdentity: Pod/x-") {
			return fmt.Errorf("the Deployment does not say why it has no pods: %s", got)
		}
		return nil
	})
}

// TestPoliciesAllowGarbageCollection deletes an object with a reserved name so that the garbage collector has to change it first.
func TestPoliciesAllowGarbageCollection(t *testing.T) {
	n := newTeam(t, "collected")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	account := &corev1.ServiceAccount{}
	key := client.ObjectKey{Namespace: "kubeop-collected-shop", Name: v1alpha1.Deployer}
	if err := n.admin.Get(t.Context(), key, account); err != nil {
		t.Fatal(err)
	}
	before := account.UID
	if err := n.admin.Delete(t.Context(), account, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		err := n.admin.Get(t.Context(), key, account)
		if err == nil && account.UID == before {
			return fmt.Errorf("the account is not deleted: %v", account.Finalizers)
		}
		return err
	})
}

// TestTheOperatorMayOnlyChangeObjectsOfTenants tries what a stolen token of the operator could be used for.
func TestTheOperatorMayOnlyChangeObjectsOfTenants(t *testing.T) {
	n := newTeam(t, "stolen")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	thief := n.as(operatorAccount)
	const deployerRole = "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubeop-deployer}, " +
		"subjects: [{kind: ServiceAccount, name: kubeop-deployer, namespace: kube-system}]"
	bind := func(kind, name string) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: " + kind + ", metadata: {name: " + name + "}, " + deployerRole + "}"
	}
	role := func(name, rule string) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: " + name + "}, rules: [" + rule + "]}"
	}
	look := "{apiGroups: [paas.kubeop.io], resources: [tenants], verbs: [get]}"
	made := "{apiVersion: v1, kind: Namespace, metadata: {name: x%s}}"
	cases := map[string]struct{ namespace, object, want string }{
		"a deployer elsewhere":             {"kube-system", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: kubeop-deployer}}", "ServiceAccount/kubeop-deployer"},
		"rights elsewhere":                 {"kube-system", bind("RoleBinding", "x"), "RoleBinding/x"},
		"rights in its own namespace":      {testenv.Namespace, bind("RoleBinding", "x"), "RoleBinding/x"},
		"a network policy elsewhere":       {"default", "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: x}, spec: {podSelector: {}}}", "NetworkPolicy/x"},
		"rights in the whole cluster":      {"", bind("ClusterRoleBinding", "x"), "ClusterRoleBinding/x"},
		"the same, named as a tenant's":    {"", bind("ClusterRoleBinding", "kubeop-tenant-x"), "ClusterRoleBinding/kubeop-tenant-x"},
		"its own rights for a tenant":      {"", role("kubeop-tenant-x", look+", {apiGroups: [''], resources: [namespaces], verbs: [patch]}"), "ClusterRole/kubeop-tenant-x"},
		"write access to what it may read": {"", role("kubeop-tenant-x", "{apiGroups: [paas.kubeop.io], resources: [tenants], verbs: [patch]}"), "ClusterRole/kubeop-tenant-x"},
		"the same, named as a deployer's":  {"", bind("ClusterRoleBinding", "kubeop-cluster-x"), "ClusterRoleBinding/kubeop-cluster-x"},
		"core kinds for a deployer":        {"", role("kubeop-cluster-x", "{apiGroups: [''], resources: [namespaces], verbs: [patch]}"), "ClusterRole/kubeop-cluster-x"},
		"roles for a deployer":             {"", role("kubeop-cluster-x", "{apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings], verbs: [patch]}"), "ClusterRole/kubeop-cluster-x"},
		"network policies for a deployer":  {"", role("kubeop-cluster-x", "{apiGroups: [networking.k8s.io], resources: [networkpolicies], verbs: [delete]}"), "ClusterRole/kubeop-cluster-x"},
		"our kinds for a deployer":         {"", role("kubeop-cluster-x", look), "ClusterRole/kubeop-cluster-x"},
		"a namespace of nobody":            {"", fmt.Sprintf(made, ", labels: {pod-security.kubernetes.io/enforce: restricted}"), "Namespace/x"},
		"a namespace without limits":       {"", fmt.Sprintf(made, ", labels: {paas.kubeop.io/tenant: x, pod-security.kubernetes.io/enforce: privileged}"), "Namespace/x"},
		"one that says nothing":            {"", fmt.Sprintf(made, ", labels: {paas.kubeop.io/tenant: x}"), "Namespace/x"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			n.denied(func() error { return thief.Create(t.Context(), n.object(c.namespace, c.object), client.DryRunAll) }, "TenantsOnly: "+c.want)
		})
	}
	n.create(namespace("stolen-bystander"))
	labelled := client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"paas.kubeop.io/tenant":"stolen","pod-security.kubernetes.io/enforce":"baseline"}}}`))
	lowered := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`))
	aggregated := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-tenant-x"}}
	aggregated.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}
	changes := map[string]struct {
		try  func() error
		want string
	}{
		"taking a namespace": {func() error { return thief.Patch(t.Context(), namespace("kube-system"), labelled, client.DryRunAll) }, "Namespace/kube-system"},
		"lowering a level": {func() error {
			return thief.Patch(t.Context(), namespace("kubeop-stolen-shop"), lowered, client.DryRunAll)
		}, "Namespace/kubeop-stolen-shop"},
		"deleting a namespace": {func() error { return thief.Delete(t.Context(), namespace("stolen-bystander"), client.DryRunAll) }, "Namespace/stolen-bystander"},
		"deleting a role": {func() error {
			return thief.Delete(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view"}}, client.DryRunAll)
		}, "ClusterRole/view"},
		"deleting a binding": {func() error {
			return thief.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: "kubeop-operator"}}, client.DryRunAll)
		}, "RoleBinding/kubeop-operator"},
	}
	for name, c := range changes {
		t.Run(name, func(t *testing.T) { n.denied(c.try, "TenantsOnly: "+c.want) })
	}
	if err := thief.Create(t.Context(), n.object("", role("kubeop-tenant-x", look)), client.DryRunAll); err != nil {
		t.Error(err)
	}
}

const accountTemplates = `apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: {{ .Release.Name }}}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: {{ .Release.Name }}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .Release.Name }}}
subjects: [{kind: ServiceAccount, name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}]
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
data: {greeting: {{ .Values.greeting }}}
`

// TestEveryKindOfAppPassesThePolicies delivers one app of each type, and then a change of the release, which runs its hook again.
func TestEveryKindOfAppPassesThePolicies(t *testing.T) {
	n := newTeam(t, "passing")
	source := env.Repo(t, "passing-source", "", "")
	n.push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(projectFile, "shop")})
	n.ready(&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-passing", Name: "shop"}})
	login := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-passing-shop", Name: "login"}}
	login.StringData = map[string]string{"username": source.User, "password": source.Password}
	n.create(login)
	source.Push(map[string]string{"config.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: from-git}}"})

	const head = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\nspec: "
	files := withRelease(shopFiles("shop", "raw"))
	files["projects/shop/apps/released/chart/templates/account.yaml"] = accountTemplates
	files["projects/shop/apps/image/app.yaml"] = fmt.Sprintf(head, "image") + "{type: Image, image: {reference: registry.example/web:v1, ports: [{name: http, port: 80}]}}\n"
	files["projects/shop/apps/git/app.yaml"] = fmt.Sprintf(head, "git") + "{type: Git, git: {url: '" + source.URL + "', secretRef: {name: login}}}\n"
	n.push(files)
	n.ready(n.app("shop", "raw"), n.app("shop", "git"), n.app("shop", "released"))
	// No node runs the pods here; that they exist shows that admission let them through.
	n.until(n.app("shop", "image"), v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
	n.eventually(func() error {
		pods := &corev1.PodList{}
		err := n.admin.List(t.Context(), pods, client.InNamespace("kubeop-passing-shop"), client.MatchingLabels{v1alpha1.AppLabel: "image"})
		if err == nil && len(pods.Items) == 0 {
			err = fmt.Errorf("the image's Deployment has no pods")
		}
		return err
	})

	n.push(map[string]string{"projects/shop/apps/released/app.yaml": strings.Replace(helmFile, "greeting: hello", "greeting: bye", 1)})
	n.eventually(func() error {
		if got := n.configMap("shop", "released").Data["greeting"]; got != "bye" {
			return fmt.Errorf("the greeting of the release is %q, want %q", got, "bye")
		}
		return nil
	})
	if got := n.configMap("shop", "released-hook").Data["greeting"]; got != "bye" {
		t.Errorf("the greeting of the hook is %q, want %q", got, "bye")
	}
	n.ready(n.app("shop", "released"))
}

// TestThePoliciesKnowTheirObjects checks the types in the policies' expressions against the kinds that they match, as Kubernetes' own controller does.
func TestThePoliciesKnowTheirObjects(t *testing.T) {
	n := newTeam(t, "typed")
	found, err := discovery.NewDiscoveryClientForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	checker := validating.TypeChecker{
		SchemaResolver: &resolver.ClientDiscoveryResolver{Discovery: memory.NewMemCacheClient(found)}, RestMapper: n.admin.RESTMapper(),
	}
	for _, name := range []string{
		"external-service", "foreign-subject", "forged-mark", "platform-identity", "platform-token", "reserved-name",
		"kubeconfig-secret", "operator-cluster-roles", "operator-homes", "operator-namespaces",
		"object-size", "grace-period", "priority-class", "platform-object", "home-finalizer", "force-removal", "operator-flow-schemas",
		"delete-definitions", "delete-tenants", "delete-namespaces", "deletion-marks", "control-plane", "tenant-namespaces",
	} {
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		n.eventually(func() error { return n.admin.Get(t.Context(), client.ObjectKey{Name: "kubeop-" + name}, policy) })
		if warnings := checker.Check(policy); len(warnings) > 0 {
			t.Errorf("policy %s: %+v", name, warnings)
		}
		policy.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "object.metadata.nothing == ''"}}
		if checked := len(checker.Check(policy)) > 0; checked != namesKinds(policy) {
			t.Errorf("policy %s is checked: %t", name, checked)
		}
	}
}

// namesKinds reports whether a policy names a kind that it matches. Kubernetes checks no types of a rule with a wildcard.
func namesKinds(policy *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
	return slices.ContainsFunc(policy.Spec.MatchConstraints.ResourceRules, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
		return !slices.Contains(slices.Concat(r.APIGroups, r.APIVersions), "*") &&
			slices.ContainsFunc(r.Resources, func(resource string) bool { return !strings.ContainsAny(resource, "*/") })
	})
}
