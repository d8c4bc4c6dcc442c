//go:build e2e

package guards

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/tenants"
)

// TestNothingOfARefusedSourceIsFetched: neither what a policy refuses, nor what may be it in another spelling.
func TestNothingOfARefusedSourceIsFetched(t *testing.T) {
	before := versions(t)
	const refused, unclear = "which is among the refused sources: evil.org", "which servers may read in several ways"
	const foreign = "which is not among the allowed sources: "
	git := func(url string) string { return "type: Git\n  git: {url: '" + url + "'}" }
	helm := func(url string) string {
		return "type: Helm\n  helm: {repository: '" + url + "', chart: web, version: 1.0.0}"
	}
	files := map[string]map[string]string{attacker: {}, narrow: {}}
	var all []pushed
	for i, c := range []struct{ tenant, spec, words string }{
		{attacker, git("https://evil.org/web"), refused}, {attacker, git("https://EVIL.org:443/web.git"), refused}, {attacker, git("ssh://git@evil.org/web"), refused},
		{attacker, git("https://evil.org./web"), refused}, {attacker, git("https://evil.org/a/../web"), unclear}, {attacker, git("https://evil.org/%77eb"), unclear},
		{attacker, helm("https://evil.org/charts"), refused}, {attacker, helm("oci://evil.org/charts"), refused}, {attacker, helm("oci://EVIL.org:443/charts"), refused},
		{attacker, "type: Git\n  git: {oci: {url: oci://evil.org/web, tag: '1'}}", refused},
		{attacker, chart, refused},
		{narrow, git("https://evil.org/web"), foreign}, {narrow, git(folders.OperatorURL + "-2"), foreign}, {narrow, git(strings.Replace(folders.OperatorURL, "/folders", "/Folders", 1)), foreign},
		{narrow, git(strings.Replace(folders.OperatorURL, "/folders", "/folders/../x", 1)), unclear},
		{narrow, helm("https://evil.org/charts"), foreign}, {narrow, helm("https://charts.magpie.example.evil.org"), foreign}, {narrow, helm("http://charts.magpie.example"), foreign},
		{narrow, helm("oci://evil.org/charts"), foreign}, {narrow, helm("oci://" + platform.Cluster.Registry.Host + "/unsigned"), foreign},
		{narrow, "type: Git\n  git: {oci: {url: oci://evil.org/web, tag: '1'}}", foreign},
		{narrow, chart, foreign},
	} {
		name := fmt.Sprintf("source-%d", i)
		beside := map[string]string{}
		if c.spec == chart {
			beside["chart/Chart.yaml"] = chartFile + "dependencies: [{name: a, version: 1.0.0, repository: 'https://evil.org/charts'}]\n"
			beside["chart/templates/a.yaml"] = text(t, object(t, controls["ConfigMap"], name))
		}
		appFiles(files[c.tenant], "shop", name, c.spec, beside)
		bad := ofKind("ConfigMap", name)
		bad.SetNamespace(v1alpha1.ProjectNamespace(c.tenant, "shop"))
		all = append(all, pushed{app: bad.GetNamespace() + "/" + name, about: "in Git: a refused source, " + c.spec, words: c.words, bad: bad})
	}
	must(t, folders.Write("source-control/a.yaml", []byte(text(t, object(t, controls["ConfigMap"], "source-control")))))
	must(t, folders.Push(t.Context(), "Change"))
	for tenant := range files {
		appFiles(files[tenant], "shop", "source-control", "type: Git\n  git: {url: '"+folders.OperatorURL+"', path: source-control}", nil)
		must(t, tenants.Push(t.Context(), repositories[tenant], files[tenant]))
		must(t, platform.AppReady(t.Context(), v1alpha1.ProjectNamespace(tenant, "shop"), "source-control"))
	}
	nothingIsDelivered(t, all)
	unchanged(t, before)
}

// registries has a Registry for each of the tenants.
func registries(ctx context.Context) error {
	files := map[string]string{}
	for tenant, password := range map[string]string{attacker: "moonstone", victim: hidden} {
		if err := platform.SetSecret(ctx, tenant+"-pull", map[string]string{"username": "robot", "password": password}); err != nil {
			return err
		}
		files["registries/"+tenant+"s.yaml"] = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Registry\nmetadata: {name: " + tenant + "s}\n" +
			"spec: {host: pull.example.com, secretRef: {name: " + tenant + "-pull}, tenants: [" + tenant + "]}\n"
	}
	return platform.Declare(ctx, files)
}

// pulled reads the Secret with the credentials of a tenant's Registry, as the default service account of a project names it.
func pulled(ctx context.Context, namespace, tenant string) (*corev1.Secret, error) {
	account, secret := &corev1.ServiceAccount{}, &corev1.Secret{}
	name := "kubeop-registry-" + tenant + "s"
	if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, account); err != nil {
		return nil, err
	}
	if len(account.ImagePullSecrets) != 1 || account.ImagePullSecrets[0].Name != name {
		return nil, fmt.Errorf("the pull Secrets are %v", account.ImagePullSecrets)
	}
	return secret, platform.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
}

// TestThePullSecretIsTheRegistrys: whoever may write Secrets in a project may change that of its Registry, and it is as before afterwards. Nobody gets that of
// another tenant.
func TestThePullSecretIsTheRegistrys(t *testing.T) {
	before := versions(t)
	ours, err := pulled(t.Context(), shop, attacker)
	must(t, err)
	if !strings.Contains(string(ours.Data[corev1.DockerConfigJsonKey]), "pull.example.com") || ours.Type != corev1.SecretTypeDockerConfigJson {
		t.Fatalf("the project has %v", ours)
	}
	by := as(t, bot)
	patch := func(text string) error {
		return by.Patch(t.Context(), ours.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	for what, change := range map[string]func() error{
		"its data": func() error {
			return patch(`{"stringData":{".dockerconfigjson":"{\"auths\":{\"evil.org\":{\"auth\":\"eDp5\"}}}"}}`)
		},
		"its labels":   func() error { return patch(`{"metadata":{"labels":null}}`) },
		"its deletion": func() error { return by.Delete(t.Context(), ours.DeepCopy()) },
	} {
		must(t, change())
		tried.add("a forged pull Secret: "+what, "")
		soon(t, "the pull Secret is as before "+what, func(ctx context.Context) error {
			now, err := pulled(ctx, shop, attacker)
			if err == nil && (!reflect.DeepEqual(now.Data, ours.Data) || !reflect.DeepEqual(now.Labels, ours.Labels) || now.Type != ours.Type) {
				err = errors.New("it is not")
			}
			return err
		})
	}
	err = patch(`{"type":"Opaque"}`)
	tried.add("a forged pull Secret: its type", fmt.Sprint(err))
	if err == nil || !strings.Contains(err.Error(), "immutable") {
		t.Errorf("ESCAPE: the type of the pull Secret: %v", err)
	}
	othersPullSecret(t)
	unchanged(t, before)
}

// othersPullSecret tries to read the credentials of the victim's Registry where they are, and to have them in a project of the attacker.
func othersPullSecret(t *testing.T) {
	t.Helper()
	theirs, err := pulled(t.Context(), theirs, victim)
	must(t, err) // The control: they are there.
	for _, user := range []string{bot, attacker + "-view", attacker + "-edit", attacker + "-admin"} {
		for what, do := range map[string]func(client.Client) error{
			"read": func(c client.Client) error {
				return c.Get(t.Context(), client.ObjectKeyFromObject(theirs), &corev1.Secret{})
			},
			"listed": func(c client.Client) error {
				return c.List(t.Context(), &corev1.SecretList{}, client.InNamespace(theirs.Namespace))
			},
			"read at its source": func(c client.Client) error {
				return c.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-system", Name: victim + "-pull"}, &corev1.Secret{})
			},
		} {
			err := do(as(t, user))
			tried.add("another tenant's pull Secret, "+what+", by "+user, "") // The message has the name that was asked for.
			if err == nil || !apierrors.IsForbidden(err) {
				t.Errorf("ESCAPE: another tenant's pull Secret, %s by %s: %v", what, user, err)
			}
		}
	}
	// A Secret of the same name in a project of the attacker gets nothing.
	forged := object(t, strings.Replace(controls["PullSecret"], "NAME", victim+"s", 1), "")
	must(t, as(t, bot).Create(t.Context(), forged))
	files := map[string]string{}
	appFiles(files, "shop", "pulled", inTheAppOf(t, "pulled"), nil)
	must(t, tenants.Push(t.Context(), own, files))
	must(t, platform.AppReady(t.Context(), shop, "pulled"))
	tried.add("another tenant's pull Secret, by its name", "")
	for _, namespace := range []string{shop, v1alpha1.ProjectNamespace(attacker, "nets"), v1alpha1.HomeNamespace(attacker)} {
		list := &corev1.SecretList{}
		must(t, platform.Client.List(t.Context(), list, client.InNamespace(namespace)))
		for _, secret := range list.Items {
			for _, data := range secret.Data {
				if strings.Contains(string(data), hidden) {
					t.Errorf("ESCAPE: Secret %s/%s has the credentials of another tenant", namespace, secret.Name)
				}
			}
		}
	}
	must(t, as(t, bot).Delete(t.Context(), forged))
}

// inTheAppOf is the spec of an app with a ConfigMap.
func inTheAppOf(t *testing.T, name string) string {
	t.Helper()
	return "type: Raw\n  raw:\n    manifests:\n    - " + text(t, object(t, controls["ConfigMap"], name))
}
