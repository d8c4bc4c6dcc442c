package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/access"
)

const (
	// cronJob is a CronJob with a name and more fields of its container.
	cronJob = "{apiVersion: batch/v1, kind: CronJob, metadata: {name: %s}, spec: {schedule: '0 0 1 1 *', jobTemplate: {spec: {template: {spec: {" +
		"restartPolicy: Never, containers: [{name: a, image: a%s}]}}}}}}"
	ownersShop  = "kubeop-owners-shop"
	requestedAt = "reconcile.fluxcd.io/requestedAt"
)

// attempt is a request of a person, and the roles, separated by spaces, that may send it.
type attempt struct {
	roles string
	send  func(context.Context, client.Client) error
}

// staffed returns a tenant with a person of each role, whose names are those of the roles, and a project with CronJobs.
func staffed(t *testing.T) *team {
	n := newTeam(t, "owners")
	files := shopFiles("shop", "web")
	files["projects/shop/apps/jobs/app.yaml"] = strings.ReplaceAll(rawApp(
		fmt.Sprintf(cronJob, "plain", ""), fmt.Sprintf(cronJob, "keyed", ", envFrom: [{secretRef: {name: keys}}]"),
	)["app.yaml"], "name: bad", "name: jobs")
	n.push(files)
	n.ready(n.app("shop", "web"), n.app("shop", "jobs"))
	var owners []v1alpha1.Owner
	for _, role := range []string{"view", "edit", "admin"} {
		owners = append(owners, v1alpha1.Owner{Kind: rbacv1.UserKind, Name: "owners-" + role, Role: role})
	}
	n.own(owners...)
	n.accounts("view", "edit", "admin")
	n.passes(func() error {
		return errors.Join(
			n.as("owners-view").Get(t.Context(), client.ObjectKeyFromObject(n.app("shop", "web")), n.app("shop", "web")),
			n.as("owners-edit").Patch(t.Context(), n.repository(), annotated(requestedAt, "1"), client.DryRunAll),
			n.as("owners-admin").Patch(t.Context(), n.repository(), annotated(v1alpha1.ConfirmHistoryAnnotation, "1"), client.DryRunAll),
			n.as("owners-admin").Patch(t.Context(), n.app("shop", "web"), annotated(v1alpha1.ConfirmAnnotation, "1"), client.DryRunAll))
	})
	n.denied(func() error {
		return n.as("owners-edit").Patch(t.Context(), n.app("shop", "web"), merging(`{"spec":{"suspend":true}}`), client.DryRunAll)
	}, "Requests: App/web comes from Git", "edit or admin", "admin also "+v1alpha1.ConfirmAnnotation)
	return n
}

// accounts gives the accounts as which people act by kubeconfigs their roles in the project.
func (n *team) accounts(roles ...string) {
	n.t.Helper()
	operator := n.masterful(operatorAccount) // Nobody else may.
	for _, role := range roles {
		err := operator.Create(n.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "people-" + role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kubeop-" + role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: access.AccountPrefix + role, Namespace: n.namespace()}},
		})
		if err != nil {
			n.t.Fatal(err)
		}
	}
	app := n.app("shop", "web")
	n.passes(func() error {
		return errors.Join(
			n.as(n.accessAccount("view")).Get(n.t.Context(), client.ObjectKeyFromObject(app), app.DeepCopy()),
			n.as(n.accessAccount("edit")).Patch(n.t.Context(), app.DeepCopy(), annotated(requestedAt, "1"), client.DryRunAll),
			n.as(n.accessAccount("admin")).List(n.t.Context(), &corev1.SecretList{}, client.InNamespace(n.namespace())))
	})
}

// accessAccount is the user as which people of a role act by kubeconfigs in project shop.
func (n *team) accessAccount(role string) string {
	return "system:serviceaccount:" + n.namespace() + ":" + access.AccountPrefix + role
}

// TestOwnersMayDoWhatTheirRolesSay sends requests as a person of each role. All parts use one tenant.
func TestOwnersMayDoWhatTheirRolesSay(t *testing.T) {
	n := staffed(t)
	t.Run("owners request reconciliations and change nothing else", n.ownersRequestAndChangeNothingElse)
	t.Run("owners operate their workloads", n.ownersOperateTheirWorkloads)
	t.Run("owners gain no identity", n.ownersGainNoIdentity)
	t.Run("kubeconfigs leave no valid token", n.kubeconfigsLeaveNothing)
	t.Run("the commands of the docs are granted", n.theCommandsAreGranted)
	t.Run("owners have the kinds that administrators add", n.ownersHaveTheKindsThatAdministratorsAdd)
	t.Run("owners suspend an app", n.ownersSuspendAnApp)
	t.Run("rights of other roles are neither widened nor narrowed", n.rightsOfOthersAreNeitherWidenedNorNarrowed)
}

// ownersHaveTheKindsThatAdministratorsAdd adds kinds to the roles by labels, and tries to do that as an owner.
func (n *team) ownersHaveTheKindsThatAdministratorsAdd(t *testing.T) {
	listing := func(roles, kind string) attempt {
		return attempt{roles, func(ctx context.Context, c client.Client) error {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion("v1")
			if kind != "PodTemplateList" {
				list.SetAPIVersion("storage.k8s.io/v1")
			}
			list.SetKind(kind)
			return c.List(ctx, list, client.InNamespace(ownersShop))
		}}
	}
	n.tryAll(t, map[string]attempt{"a kind of no role": listing("", "PodTemplateList"), "another": listing("", "CSIStorageCapacityList")})
	n.platformRole("templates", "view", "", "podtemplates")
	n.platformRole("capacities", "edit", "storage.k8s.io", "csistoragecapacities")
	n.passes(func() error {
		ctx, templates, capacities := t.Context(), listing("", "PodTemplateList"), listing("", "CSIStorageCapacityList")
		return errors.Join(templates.send(ctx, n.as("owners-view")), capacities.send(ctx, n.as("owners-edit")), capacities.send(ctx, n.as("owners-admin")))
	})
	n.tryAll(t, map[string]attempt{
		"a kind added to view": listing("view edit admin", "PodTemplateList"),
		"a kind added to edit": listing("edit admin", "CSIStorageCapacityList"),
		"Secrets as ever": {"admin", func(ctx context.Context, c client.Client) error {
			return c.List(ctx, &corev1.SecretList{}, client.InNamespace(ownersShop))
		}},
		"deleting a claim": {"admin", func(ctx context.Context, c client.Client) error {
			return client.IgnoreNotFound(c.Delete(ctx, n.claim("none")))
		}},
		"adding kinds themselves": {"", func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, &rbacv1.ClusterRole{
				ObjectMeta: metav1.ObjectMeta{Name: "by-an-owner", Labels: map[string]string{"paas.kubeop.io/aggregate-to-admin": "true"}},
				Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
			}, client.DryRunAll)
		}},
	})
}

func merging(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }

// tryAll sends each attempt as each role, and checks which are refused. The account of the role may send nothing that a person of the role may not.
func (n *team) tryAll(t *testing.T, attempts map[string]attempt) {
	t.Helper()
	for _, role := range []string{"view", "edit", "admin"} {
		person, account := n.as("owners-"+role), n.as(n.accessAccount(role))
		for name, a := range attempts {
			if !slices.Contains(strings.Fields(a.roles), role) {
				t.Run(role+" by kubeconfig: "+name, func(t *testing.T) {
					if err := a.send(t.Context(), account); !refusalOf(err) {
						t.Errorf("not refused: %v", err)
					}
				})
			}
			t.Run(role+": "+name, func(t *testing.T) {
				err := a.send(t.Context(), person)
				switch may := slices.Contains(strings.Fields(a.roles), role); {
				case may && err != nil:
					t.Errorf("refused: %v", err)
				case !may && !refusalOf(err):
					t.Errorf("not refused: %v", err)
				}
			})
		}
	}
}

// refusalOf reports whether the API server refused a request, by RBAC or by a policy.
func refusalOf(err error) bool {
	return apierrors.IsForbidden(err) || (err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy"))
}

// patching returns an attempt to change an object.
func patching(roles string, o client.Object, patch client.Patch, options ...client.PatchOption) attempt {
	return attempt{roles, func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, o.DeepCopyObject().(client.Object), patch, append(options, client.DryRunAll)...)
	}}
}

// applying returns an attempt to apply an object (server-side), also over the fields of other managers.
func applying(roles string, o client.Object, manager string) attempt {
	return attempt{roles, func(ctx context.Context, c client.Client) error {
		data, err := json.Marshal(o)
		if err != nil {
			return err
		}
		return c.Patch(ctx, o.DeepCopyObject().(client.Object), client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(manager), client.ForceOwnership, client.DryRunAll)
	}}
}

// ownersRequestAndChangeNothingElse annotates and changes kubeop's objects as a person of each role.
func (n *team) ownersRequestAndChangeNothingElse(t *testing.T) {
	web, shop, repository := n.app("shop", "web"), n.project("shop"), n.repository()
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	n.reconcile(web) // The annotation exists, so it can be removed.
	request := func(key string) client.Patch { return annotated(key, "2030-01-31T18:00:00Z") }
	applied := func(more string) *unstructured.Unstructured {
		return n.object(ownersShop, "{apiVersion: paas.kubeop.io/v1alpha1, kind: App, metadata: {name: web, annotations: {"+requestedAt+": '2'}}"+more+"}")
	}
	sameApply, otherApply := applied(""), applied(", spec: {suspend: true}")
	newApply := applied(", spec: {type: Raw, raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: new}}]}}")
	newApply.SetName("new")
	// All that kubeop applied, and a request: nothing but the ownership of the fields would change.
	kubeops := n.object(ownersShop, "{apiVersion: paas.kubeop.io/v1alpha1, kind: App, metadata: {name: web}}")
	n.there(kubeops)
	kubeops.SetManagedFields(nil)
	kubeops.SetResourceVersion("")
	unstructured.RemoveNestedField(kubeops.Object, "status")
	kubeops.SetAnnotations(withRequest(kubeops.GetAnnotations()))
	n.tryAll(t, map[string]attempt{
		"requesting a reconcile of an app":    patching("edit admin", web, request(requestedAt)),
		"of a project":                        patching("edit admin", shop, request(requestedAt)),
		"of a repository":                     patching("edit admin", repository, request(requestedAt)),
		"with a JSON patch":                   patching("edit admin", web, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/metadata/annotations/reconcile.fluxcd.io~1requestedAt","value":"2"}]`))),
		"with an apply":                       applying("edit admin", sameApply, "kubectl"),
		"removing a request":                  patching("edit admin", web, annotated(requestedAt, "")),
		"forcing a try":                       patching("edit admin", web, request("reconcile.fluxcd.io/forceAt")),
		"forgetting failures":                 patching("edit admin", web, request("reconcile.fluxcd.io/resetAt")),
		"suspending an app":                   patching("edit admin", web, request(v1alpha1.SuspendAnnotation)),
		"suspending a repository":             patching("edit admin", repository, request(v1alpha1.SuspendAnnotation)),
		"confirming an app's deletions":       patching("admin", web, annotated(v1alpha1.ConfirmAnnotation, "x")),
		"confirming a repository's deletions": patching("admin", repository, annotated(v1alpha1.ConfirmAnnotation, "x")),
		"confirming its history":              patching("admin", repository, annotated(v1alpha1.ConfirmHistoryAnnotation, "x")),
		"a request of a tenant":               patching("", tenant, request(requestedAt)),
		"forcing a project":                   patching("", shop, request("reconcile.fluxcd.io/forceAt")),
		"suspending a project":                patching("", shop, request(v1alpha1.SuspendAnnotation)),
		"confirming a promotion":              patching("admin", shop, annotated(v1alpha1.ConfirmPromotionAnnotation, "x")),
		"confirming a project":                patching("", shop, annotated(v1alpha1.ConfirmAnnotation, "x")),
		"allowing the deletion of a project":  patching("", shop, annotated(v1alpha1.AllowDeletionAnnotation, "shop")),
		"removing finalizers by force":        patching("", web, annotated(v1alpha1.ForceRemovalAnnotation, "web")),
		"reporting a push":                    patching("", repository, annotated(v1alpha1.PushedAnnotation, "x")),
		"another revision":                    patching("", web, annotated(v1alpha1.RevisionAnnotation, "x")),
		"removing the revision":               patching("", web, annotated(v1alpha1.RevisionAnnotation, "")),
		"an annotation of others":             patching("", web, annotated("example.com/x", "x")),
		"a long value":                        patching("", web, annotated(requestedAt, strings.Repeat("x", 254))),
		"suspending for no time":              patching("", web, annotated(v1alpha1.SuspendAnnotation, "tomorrow")),
		"suspending to a day that is none":    patching("", web, annotated(v1alpha1.SuspendAnnotation, "2030-02-31T18:00:00Z")),
		"the spec of an app":                  patching("", web, merging(`{"spec":{"suspend":true}}`)),
		"the spec with a request":             patching("", web, merging(`{"metadata":{"annotations":{"`+requestedAt+`":"2"}},"spec":{"suspend":true}}`)),
		"the spec of a project":               patching("", shop, merging(`{"spec":{"deletionPolicy":"Orphan"}}`)),
		"the spec of a repository":            patching("", repository, merging(`{"spec":{"url":"https://git.example.com/x.git"}}`)),
		"a label":                             patching("", web, merging(`{"metadata":{"labels":{"x":"y"}}}`)),
		"a label taken off":                   patching("", web, merging(`{"metadata":{"labels":{"paas.kubeop.io/tenant":null}}}`)),
		"a finalizer":                         patching("", web, merging(`{"metadata":{"finalizers":["paas.kubeop.io/finalizer","example.com/x"]}}`)),
		"no finalizer":                        patching("", repository, merging(`{"metadata":{"finalizers":null}}`)),
		"an owner":                            patching("", web, merging(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`)),
		"the managers of fields":              patching("", web, merging(`{"metadata":{"managedFields":[{}]}}`)),
		"an apply of the spec":                applying("", otherApply, "kubectl"),
		"an apply in kubeop's name":           applying("", kubeops, v1alpha1.FieldManager),
		"an apply of a new app":               applying("", newApply, "kubectl"),
		"an app of nobody's namespace":        patching("", &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}, request(requestedAt)),
		"the platform's repository":           patching("", &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformRepository}}, request(requestedAt)),
		"another tenant's repository":         patching("", &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}}, request(requestedAt)),
		"another tenant's app":                patching("", &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-stranger-shop", Name: "web"}}, request(requestedAt)),
		"the status": {"", func(ctx context.Context, c client.Client) error {
			return c.Status().Patch(ctx, n.app("shop", "web"), merging(`{"status":{"held":["x"]}}`), client.DryRunAll)
		}},
		"a replacement": {"", func(ctx context.Context, c client.Client) error {
			return c.Update(ctx, web.DeepCopy(), client.DryRunAll)
		}},
		"deleting an app":       deleting("", web),
		"deleting a project":    deleting("", shop),
		"deleting a repository": deleting("", repository),
		"deleting the tenant":   deleting("", tenant),
		"deleting all apps": {"", func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &v1alpha1.App{}, client.InNamespace(ownersShop), client.DryRunAll)
		}},
	})
}

// withRequest returns annotations with a request in addition.
func withRequest(annotations map[string]string) map[string]string {
	annotations = maps.Clone(annotations)
	annotations[requestedAt] = "2"
	return annotations
}

func deleting(roles string, o client.Object) attempt {
	return attempt{roles, func(ctx context.Context, c client.Client) error { return c.Delete(ctx, o, client.DryRunAll) }}
}

func creating(roles string, o client.Object) attempt {
	return attempt{roles, func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll)
	}}
}

// ownersOperateTheirWorkloads scales, runs Jobs and deletes claims as a person of each role.
func (n *team) ownersOperateTheirWorkloads(t *testing.T) {
	plain := "selector: {matchLabels: {x: z}}, template: {metadata: {labels: {x: z}}, spec: {" + podSpec + "}}"
	deployment := n.object(ownersShop, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: scaled}, spec: {replicas: 0, "+plain+"}}")
	set := n.object(ownersShop, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: scaled}, spec: {replicas: 0, "+plain+"}}")
	claim := n.object(ownersShop, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: kept}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ownersShop, Name: "keys"}}
	for _, o := range []client.Object{deployment, set, claim, secret} {
		n.create(o)
	}
	scaling := func(o client.Object) attempt {
		return attempt{"edit admin", func(ctx context.Context, c client.Client) error {
			return c.SubResource("scale").Patch(ctx, o.DeepCopyObject().(client.Object), merging(`{"spec":{"replicas":2}}`), client.DryRunAll)
		}}
	}
	copied := func(cron string, change func(*batchv1.Job)) client.Object { return n.jobOf(cron, change) }
	n.tryAll(t, map[string]attempt{
		"scaling a Deployment":              scaling(deployment),
		"scaling a StatefulSet":             scaling(set),
		"changing a Deployment":             patching("", deployment, merging(`{"spec":{"replicas":2}}`)),
		"a Job of a CronJob":                creating("edit admin", copied("plain", nil)),
		"a Job with Secrets":                creating("admin", copied("keyed", nil)),
		"a Job of no CronJob":               creating("", copied("plain", func(j *batchv1.Job) { j.OwnerReferences = nil })),
		"a Job of a Deployment":             creating("", copied("plain", func(j *batchv1.Job) { j.OwnerReferences[0].Kind = "Deployment" })),
		"a Job that a CronJob did not copy": creating("", copied("plain", func(j *batchv1.Job) { j.Annotations = nil })),
		"a Job as another account":          creating("admin", copied("plain", func(j *batchv1.Job) { j.Spec.Template.Spec.ServiceAccountName = "bot" })),
		"a Job with a key of a Secret": creating("admin", copied("plain", func(j *batchv1.Job) {
			from := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "x", LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}}}
			j.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "b", Image: "a", Env: []corev1.EnvVar{{Name: "X", ValueFrom: from}}}}
		})),
		"a Job with a volume of a Secret": creating("admin", copied("plain", mounting(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keys"}}))),
		"a Job with a projected Secret": creating("admin", copied("plain", mounting(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}}}},
		}}))),
		"a Job with a claim": creating("admin", copied("plain", mounting(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "kept"}}))),
		"a Job with a pull Secret": creating("admin", copied("plain", func(j *batchv1.Job) {
			j.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "keys"}}
		})),
		"a Job with the Secret of a Registry": creating("edit admin", copied("plain", func(j *batchv1.Job) {
			j.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "kubeop-registry-ghcr"}}
		})),
		"a Job marked as another tenant's": creating("", copied("plain", func(j *batchv1.Job) { j.Spec.Template.Labels[v1alpha1.TenantLabel] = "stranger" })),
		"a Job in the home": creating("", copied("plain", func(j *batchv1.Job) {
			j.Namespace = "kubeop-owners"
			delete(j.Spec.Template.Labels, v1alpha1.ProjectLabel)
		})),
		"deleting a claim": deleting("admin", claim),
		"a new claim":      creating("", n.object(ownersShop, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: more}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}")),
		"all claims": {"", func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(ownersShop), client.DryRunAll)
		}},
		"a pod":               creating("", n.object(ownersShop, "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {"+podSpec+"}}")),
		"a pod of the system": creating("", n.object("kube-system", "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {"+podSpec+"}}")),
		"reading a Secret": {"admin", func(ctx context.Context, c client.Client) error {
			return c.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{})
		}},
		"the releases of Helm": {"admin", func(ctx context.Context, c client.Client) error {
			return c.List(ctx, &corev1.SecretList{}, client.InNamespace(ownersShop), client.MatchingLabels{"owner": "helm"})
		}},
		"Secrets of the operator": {"", func(ctx context.Context, c client.Client) error {
			return c.List(ctx, &corev1.SecretList{}, client.InNamespace("kubeop-system"))
		}},
		"the own tenant": {"view edit admin", func(ctx context.Context, c client.Client) error {
			return c.Get(ctx, client.ObjectKey{Name: "owners"}, &v1alpha1.Tenant{})
		}},
		"the own repository": {"view edit admin", func(ctx context.Context, c client.Client) error {
			return c.Get(ctx, client.ObjectKey{Name: "owners"}, &v1alpha1.Repository{})
		}},
		"the own projects": {"view edit admin", func(ctx context.Context, c client.Client) error {
			return c.List(ctx, &v1alpha1.ProjectList{}, client.InNamespace("kubeop-owners"))
		}},
		"the own apps": {"view edit admin", func(ctx context.Context, c client.Client) error {
			return c.List(ctx, &v1alpha1.AppList{}, client.InNamespace(ownersShop))
		}},
		"the names of all tenants":      {"", func(ctx context.Context, c client.Client) error { return c.List(ctx, &v1alpha1.TenantList{}) }},
		"the names of all repositories": {"", func(ctx context.Context, c client.Client) error { return c.List(ctx, &v1alpha1.RepositoryList{}) }},
		"the apps of all tenants":       {"", func(ctx context.Context, c client.Client) error { return c.List(ctx, &v1alpha1.AppList{}) }},
		"the namespaces of all tenants": {"", func(ctx context.Context, c client.Client) error { return c.List(ctx, &corev1.NamespaceList{}) }},
	})
}

func mounting(source corev1.VolumeSource) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}}
	}
}

// jobOf returns the Job that kubectl create job --from=cronjob/<name> creates, changed.
func (n *team) jobOf(name string, change func(*batchv1.Job)) *batchv1.Job {
	n.t.Helper()
	cron := &batchv1.CronJob{}
	if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: ownersShop, Name: name}, cron); err != nil {
		n.t.Fatal(err)
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ownersShop, Name: "manual", Labels: cron.Spec.JobTemplate.Labels,
			Annotations:     map[string]string{"cronjob.kubernetes.io/instantiate": "manual"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: cron.Name, UID: cron.UID}},
		},
		Spec: *cron.Spec.JobTemplate.Spec.DeepCopy(),
	}
	if job.Spec.Template.Labels[v1alpha1.AppLabel] != "jobs" {
		n.t.Fatalf("the labels of the pods are %v, not the app's", job.Spec.Template.Labels)
	}
	if change != nil {
		change(job)
	}
	return job
}

// ownersGainNoIdentity asks for permissions that would let a person act as somebody else.
func (n *team) ownersGainNoIdentity(t *testing.T) {
	for _, role := range []string{"view", "edit", "admin"} {
		for _, asked := range []authorizationv1.ResourceAttributes{
			{Verb: "impersonate", Resource: "serviceaccounts", Name: v1alpha1.Deployer}, {Verb: "impersonate", Resource: "users"},
			{Verb: "create", Resource: "serviceaccounts", Subresource: "token"}, {Verb: "bind", Group: rbacv1.GroupName, Resource: "clusterroles"},
			{Verb: "create", Group: rbacv1.GroupName, Resource: "rolebindings"}, {Verb: "escalate", Group: rbacv1.GroupName, Resource: "roles"},
			{Verb: "patch", Resource: "namespaces"}, {Verb: "patch", Group: v1alpha1.Group, Resource: "apps", Subresource: "status"},
			{Verb: "update", Group: v1alpha1.Group, Resource: "apps"}, {Verb: "update", Group: "batch", Resource: "jobs"},
			{Verb: "patch", Resource: "pods", Subresource: "ephemeralcontainers"}, {Verb: "create", Resource: "pods", Subresource: "eviction"},
		} {
			asked.Namespace = ownersShop
			for _, user := range []string{"owners-" + role, n.accessAccount(role)} {
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &asked}}
				if n.create(review); review.Status.Allowed {
					t.Errorf("%s may %s %s/%s", user, asked.Verb, asked.Resource, asked.Subresource)
				}
			}
		}
	}
}

// kubeconfigsLeaveNothing: with a kubeconfig, nobody gets a token that is valid after it.
func (n *team) kubeconfigsLeaveNothing(t *testing.T) {
	secret := func(annotations map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ownersShop, Name: "long-lived", Annotations: annotations}, Type: corev1.SecretTypeServiceAccountToken}
	}
	byKubeconfig := n.as(n.accessAccount("admin"))
	n.denied(func() error {
		return byKubeconfig.Create(t.Context(), secret(map[string]string{corev1.ServiceAccountNameKey: "default"}), client.DryRunAll)
	}, "PlatformToken: Secret/long-lived requests a token of service account default", "valid after the kubeconfig")
	n.passes(func() error {
		return byKubeconfig.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ownersShop, Name: "plain"}}, client.DryRunAll)
	})
}

// rightsOfOthersAreNeitherWidenedNorNarrowed gives people rights on Apps by roles that are not kubeop's.
func (n *team) rightsOfOthersAreNeitherWidenedNorNarrowed(t *testing.T) {
	bind := func(user string, verbs ...string) client.Client {
		name := metav1.ObjectMeta{Namespace: ownersShop, Name: user}
		n.create(&rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.Group}, Resources: []string{"apps"}, Verbs: verbs}}})
		n.create(&rbacv1.RoleBinding{ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}})
		return n.as(user)
	}
	web, spec := n.app("shop", "web"), merging(`{"spec":{"suspend":true}}`)
	patcher := bind("patcher", "patch")
	n.denied(func() error { return patcher.Patch(t.Context(), web, spec, client.DryRunAll) }, "Requests: App/web")
	whole := bind("whole", "patch", "update")
	n.passes(func() error { return whole.Patch(t.Context(), n.app("shop", "web"), spec, client.DryRunAll) })
	n.denied(func() error {
		return patcher.Patch(t.Context(), n.app("shop", "web"), annotated(v1alpha1.ConfirmAnnotation, "x"), client.DryRunAll)
	},
		"only an owner of the tenant with the role admin", v1alpha1.ConfirmAnnotation)
}

// ownersSuspendAnApp suspends an app as a person with the role edit: a push waits until the person ends the suspension.
func (n *team) ownersSuspendAnApp(t *testing.T) {
	editor, web := n.as("owners-edit"), n.app("shop", "web")
	if err := editor.Patch(t.Context(), web, annotated(v1alpha1.SuspendAnnotation, "2130-01-31T18:00:00Z")); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
			return err
		}
		if says := conditions.GetMessage(web, v1alpha1.ReadyCondition); !strings.HasPrefix(says, "Suspended until 2130-01-31T18:00:00Z; ") {
			return fmt.Errorf("Ready says %q", says)
		}
		return nil
	})
	revision := n.push(map[string]string{"projects/shop/apps/web/app.yaml": fmt.Sprintf(rawFile, "web", "web", "later")})
	n.synced(revision, metav1.ConditionTrue)
	if got := n.configMap("shop", "web").Data["greeting"]; got != "hello" {
		t.Errorf("the suspended app delivered %q", got)
	}
	if err := editor.Patch(t.Context(), web, annotated(v1alpha1.SuspendAnnotation, "")); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		if got := n.configMap("shop", "web").Data["greeting"]; got != "later" {
			return fmt.Errorf("delivered is %q", got)
		}
		return nil
	})
	n.ready(web)
}
