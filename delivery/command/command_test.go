package command

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestASentenceSaysWhoMayRunWhichCommand(t *testing.T) {
	app := func(namespace string) *v1alpha1.App {
		return &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	}
	acme := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	for want, got := range map[string]string{
		"an owner of the tenant with the role admin, or an administrator of the cluster, may run: kubectl annotate repository acme --overwrite a=b": Annotate(
			Admin.In("acme"), "repository", acme, "a", "b"),
		"an administrator of the cluster may run: kubectl annotate repository acme --overwrite a=b": Annotate(Admin.In(""), "repository", acme, "a", "b"),
		`an owner of the tenant with the role edit or admin may run: kubectl annotate app web -n kubeop-acme-shop --overwrite a="$(date +%s)"`: Again(
			"acme", app("kubeop-acme-shop"), "a"),
		`an administrator of the cluster may run: kubectl annotate app web -n ingress --overwrite a="$(date +%s)"`: Again(v1alpha1.PlatformTenant, app("ingress"), "a"),
		`an administrator of the cluster may run: kubectl patch app web -n kubeop-acme-shop --type merge -p '{"spec":{"deletionPolicy":"Orphan"}}'`: Set(
			app("kubeop-acme-shop"), "deletionPolicy", "Orphan"),
		"an owner of the tenant with the role admin, or an administrator of the cluster, may run: kubectl create secret generic db -n kubeop-acme-shop " +
			"--from-literal=username=... --from-literal=password=...": CreateSecret("kubeop-acme-shop", "db", "username", "password"),
		"an administrator of the cluster may run: kubectl create secret generic db -n kubeop-system --from-literal=KEY=...":         CreateSecret("kubeop-system", "db"),
		"an administrator of the cluster may run: kubectl create secret generic people -n kubeop-system --from-file=people.pub=...": CreateSecret("kubeop-system", "people", "people.pub"),
		"an administrator of the cluster may run: kubectl create secret generic db -n kubeop-system --from-file=identity=... " +
			"--from-file=known_hosts=... --dry-run=client -o yaml | kubectl apply -f -": WriteSecret("kubeop-system", "db", "identity", "known_hosts"),
		"an owner of the tenant with the role admin, or an administrator of the cluster, may run: kubectl patch secret db -n kubeop-acme-shop " +
			`-p '{"data":{"token":null}}'`: RemoveKey("kubeop-acme-shop", "db", "token"),
		"an administrator of the cluster may run: kubectl delete secret web -n ingress":                                                       Delete(Admin.In(v1alpha1.PlatformTenant), "secret", app("ingress")),
		"an owner of the tenant with the role admin, or an administrator of the cluster, may run: kubectl delete pvc web -n kubeop-acme-shop": DeleteClaim(app("kubeop-acme-shop")),
		"an administrator of the cluster may run: kubectl delete pvc web -n ingress":                                                          DeleteClaim(app("ingress")),
		`an administrator of the cluster may run: kubectl patch secret web -n ingress --type merge -p '{"metadata":{"finalizers":null}}'`:     TakeOffFinalizers(Administrator, "secret", app("ingress")),
		"an administrator of the cluster may run: kubectl label priorityclass.scheduling.k8s.io acme --overwrite a=b c-": Label(
			Resource(schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"}), acme, "a=b", "c-"),
		"an administrator of the cluster may see why with: kubectl describe configmap web -n ingress": Describe(Resource(schema.GroupKind{Kind: "ConfigMap"}), app("ingress")),
		`to keep them, an administrator of the cluster may run: kubectl patch pvc a b -n ns --type json -p '[{"op":"remove","path":"/metadata/ownerReferences"}]'`: Disown(
			"ns", []string{"a", "b"}),
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestTheCommandToForceARemovalNamesTheObject(t *testing.T) {
	for want, o := range map[string]metav1.Object{
		"kubectl annotate tenant acme --overwrite " + v1alpha1.ForceRemovalAnnotation + "=acme":                &metav1.ObjectMeta{Name: "acme"},
		"kubectl annotate tenant shop -n kubeop-acme --overwrite " + v1alpha1.ForceRemovalAnnotation + "=shop": &metav1.ObjectMeta{Name: "shop", Namespace: "kubeop-acme"},
	} {
		if got := ForceRemoval("tenant", o); !strings.HasSuffix(got, ": an administrator of the cluster may run: "+want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
