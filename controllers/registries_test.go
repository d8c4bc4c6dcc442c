package controllers

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
	ocitest "github.com/kubeop/kubeop/internal/testenv/sources"
)

// registryFor is a Registry that a tenant may use. Its Secret has the same name.
func registryFor(name, host string, tenants ...string) *v1alpha1.Registry {
	return &v1alpha1.Registry{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.RegistrySpec{Host: host, SecretRef: v1alpha1.LocalSecretReference{Name: name}, Tenants: tenants},
	}
}

// source writes the Secret of a Registry: credentials for its host, and for another one that nobody is to get.
func (n *team) source(name, host, password string) {
	n.t.Helper()
	config := fmt.Sprintf(`{"auths":{%q:{"username":"robot","password":%q},"other.example":{"username":"root","password":"of-another-host"}}}`, host, password)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: config},
	}
	err := n.admin.Update(n.t.Context(), secret)
	if apierrors.IsNotFound(err) {
		err = n.admin.Create(n.t.Context(), secret)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// copyHas waits until the copy of a Registry's credentials has exactly one entry with this password, and returns the copy. With "", it waits
// until there is no copy.
func (n *team) copyHas(registry, host, password string) *corev1.Secret {
	n.t.Helper()
	secret := &corev1.Secret{}
	n.eventually(func() error {
		err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: v1alpha1.PullSecretPrefix + registry}, secret)
		if password == "" {
			if err == nil {
				return fmt.Errorf("there is still %s", secret.Name)
			}
			return client.IgnoreNotFound(err)
		}
		if err != nil {
			return err
		}
		var config struct {
			Auths map[string]struct{ Username, Password string }
		}
		if err := json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config); err != nil {
			return err
		}
		if len(config.Auths) != 1 || config.Auths[host].Password != password || config.Auths[host].Username != "robot" {
			return fmt.Errorf("the copy has %+v", config.Auths)
		}
		return nil
	})
	return secret
}

// accountHas waits until the default service account names exactly these Secrets.
func (n *team) accountHas(want ...string) {
	n.t.Helper()
	n.eventually(func() error {
		account, got := n.account(), []string(nil)
		for _, ref := range account.ImagePullSecrets {
			got = append(got, ref.Name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("the default service account names (-want +got):\n%s", diff)
		}
		return nil
	})
}

func (n *team) account() *corev1.ServiceAccount {
	n.t.Helper()
	account := &corev1.ServiceAccount{}
	if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "default"}, account); err != nil {
		n.t.Fatal(err)
	}
	return account
}

// withAccount makes the default service account, unless Kubernetes has, and gives it a pull Secret of the tenant.
func (n *team) withAccount() {
	n.t.Helper()
	err := n.admin.Create(n.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "default"}})
	if client.IgnoreAlreadyExists(err) != nil {
		n.t.Fatal(err)
	}
	n.setAccount("own")
}

func (n *team) setAccount(names ...string) {
	n.t.Helper()
	n.eventually(func() error {
		account := n.account()
		account.ImagePullSecrets = nil
		for _, name := range names {
			account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
		}
		return n.admin.Update(n.t.Context(), account)
	})
}

// podNames waits until the pods of a Deployment name exactly these Secrets.
func (n *team) podNames(app string, want ...string) {
	n.t.Helper()
	n.eventually(func() error {
		deployment, got := &appsv1.Deployment{}, []string(nil)
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: app}, deployment); err != nil {
			return err
		}
		for _, ref := range deployment.Spec.Template.Spec.ImagePullSecrets {
			got = append(got, ref.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("the pods of %s name (-want +got):\n%s", app, diff)
		}
		return nil
	})
}

func (n *team) setRegistry(name string, change func(*v1alpha1.RegistrySpec)) {
	n.t.Helper()
	n.eventually(func() error {
		registry := &v1alpha1.Registry{}
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Name: name}, registry); err != nil {
			return err
		}
		change(&registry.Spec)
		return n.admin.Update(n.t.Context(), registry)
	})
}

func (n *team) registryCounts(registry *v1alpha1.Registry, want int) {
	n.t.Helper()
	n.eventually(func() error {
		err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(registry), registry)
		if err == nil && registry.Status.Projects != want {
			return fmt.Errorf("status.projects is %d, want %d", registry.Status.Projects, want)
		}
		return err
	})
}

func imageApp(name, reference string) string {
	return fmt.Sprintf("apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\nspec:\n  type: Image\n  image: {reference: %q}\n", name, reference)
}

func (n *team) shopWithImages(host string) {
	n.t.Helper()
	n.push(map[string]string{
		"projects/shop/project.yaml":          fmt.Sprintf(projectFile, "shop"),
		"projects/shop/apps/private/app.yaml": imageApp("private", host+"/team/web:1.0"),
		"projects/shop/apps/public/app.yaml":  imageApp("public", "nginx:1.29"),
	})
	n.eventually(func() error {
		return n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "public"}, &appsv1.Deployment{})
	})
	n.withAccount()
}

func TestAProjectHasTheCredentialsOfItsRegistries(t *testing.T) {
	n := newTeam(t, "pullers")
	const name, host, copied = "pulled", "pulled.example:5000", "kubeop-registry-pulled"
	n.shopWithImages(host)
	n.source(name, host, "first-password")
	registry := registryFor(name, host, n.name)
	n.create(registry)

	secret := n.copyHas(name, host, "first-password")
	if secret.Type != corev1.SecretTypeDockerConfigJson || secret.Labels[v1alpha1.ProjectLabel] != "shop" || secret.Labels[v1alpha1.TenantLabel] != n.name {
		t.Errorf("the copy is of type %s with labels %v", secret.Type, secret.Labels)
	}
	n.accountHas(copied, "own")
	n.podNames("private", copied)
	n.podNames("public")
	n.registryCounts(registry, 1)
	n.ready(registry)

	t.Run("nothing is written while nothing changes", func(t *testing.T) {
		project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HomeNamespace(n.name), Name: "shop"}}
		n.until(project, v1alpha1.RegistriesReadyCondition, metav1.ConditionTrue, "")
		before := secret.ResourceVersion + " " + n.account().ResourceVersion
		n.reconcile(project)
		if after := n.copyHas(name, host, "first-password").ResourceVersion + " " + n.account().ResourceVersion; after != before {
			t.Errorf("the versions were %s, and are %s", before, after)
		}
	})
	t.Run("the Secret is rotated", func(t *testing.T) {
		began := time.Now()
		n.source(name, host, "second-password")
		n.copyHas(name, host, "second-password")
		took := time.Since(began)
		t.Logf("the copy followed after %s", took)
		if took > 20*time.Second {
			t.Errorf("the copy followed after %s", took)
		}
	})
	t.Run("what people change is put back", func(t *testing.T) {
		live := n.copyHas(name, host, "second-password")
		live.Data = map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"evil.example":{}}}`)}
		if err := n.admin.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		n.copyHas(name, host, "second-password")
		if err := n.admin.Delete(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		n.copyHas(name, host, "second-password")
		n.setAccount("own", "another")
		n.accountHas("another", copied, "own")
	})
	t.Run("the Secret is missing or invalid", func(t *testing.T) {
		if err := n.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: name}}); err != nil {
			t.Fatal(err)
		}
		message := n.until(registry, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.SecretMissingReason)
		if !strings.Contains(message, "secret "+testenv.Namespace+"/"+name+" of spec.secretRef does not exist: create it") {
			t.Errorf("the message is %q", message)
		}
		n.source(name, "elsewhere.example", "third-password")
		message = n.until(registry, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.SecretInvalidReason)
		if !strings.Contains(message, "no credentials for "+host) || strings.Contains(message, "password\"") || strings.Contains(message, "third") || strings.Contains(message, "other.example") {
			t.Errorf("the message is %q", message)
		}
		n.copyHas(name, host, "second-password")
		n.accountHas("another", copied, "own")
		n.registryCounts(registry, 1)
		n.source(name, host, "fourth-password")
		n.copyHas(name, host, "fourth-password")
		n.ready(registry)
	})
	t.Run("the tenant may not use it any more", func(t *testing.T) {
		n.setRegistry(name, func(spec *v1alpha1.RegistrySpec) { spec.Tenants = nil })
		n.copyHas(name, host, "")
		n.accountHas("another", "own")
		n.podNames("private")
		n.registryCounts(registry, 0)
		if message := n.until(registry, v1alpha1.ReadyCondition, metav1.ConditionTrue, ""); !strings.Contains(message, "Nobody may use it") {
			t.Errorf("the message is %q", message)
		}
	})
	t.Run("the Registry is deleted", func(t *testing.T) {
		n.setRegistry(name, func(spec *v1alpha1.RegistrySpec) { spec.Tenants = []string{n.name} })
		n.copyHas(name, host, "fourth-password")
		n.accountHas("another", copied, "own")
		if err := n.admin.Delete(t.Context(), registry); err != nil {
			t.Fatal(err)
		}
		n.copyHas(name, host, "")
		n.accountHas("another", "own")
		n.eventually(func() error {
			switch err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(registry), registry); {
			case apierrors.IsNotFound(err):
				return nil
			case err != nil:
				return err
			}
			return errors.New("the Registry is there")
		})
	})
	for _, password := range []string{"first-password", "second-password", "third-password", "fourth-password", "of-another-host"} {
		if strings.Contains(n.log(), password) {
			t.Errorf("the log has %s", password)
		}
	}
}

// TestASecretOfTheTenantIsNotOverwritten, although it has the name of a copy. Other tenants are not affected by what theirs may use.
func TestASecretOfTheTenantIsNotOverwritten(t *testing.T) {
	n := newTeam(t, "keepers")
	const name, host = "keepsake", "keepsake.example"
	n.shopWithImages(host)
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "kubeop-registry-" + name}, StringData: map[string]string{"mine": "yes"}}
	n.create(own)
	n.source(name, host, "kept-password")
	registry := registryFor(name, host, n.name)
	n.create(registry)
	t.Cleanup(func() { _ = n.admin.Delete(t.Context(), registry) })

	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HomeNamespace(n.name), Name: "shop"}}
	message := n.until(project, v1alpha1.RegistriesReadyCondition, metav1.ConditionFalse, v1alpha1.PullSecretRefusedReason)
	if !strings.Contains(message, "kubeop-registry-"+name) || !strings.Contains(message, "exists already") || strings.Contains(message, "kept-password") {
		t.Errorf("the message is %q", message)
	}
	n.happened(project, corev1.EventTypeWarning, v1alpha1.PullSecretRefusedReason, message)
	n.ready(project)
	n.accountHas("own")
	n.podNames("private")
	live := &corev1.Secret{}
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(own), live); err != nil || live.ResourceVersion != own.ResourceVersion {
		t.Errorf("the tenant's own Secret was changed: %v", err)
	}
	n.registryCounts(registry, 0)

	if err := n.admin.Delete(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	n.copyHas(name, host, "kept-password")
	n.accountHas("kubeop-registry-"+name, "own")
	n.until(project, v1alpha1.RegistriesReadyCondition, metav1.ConditionTrue, "")

	n.setRegistry(name, func(spec *v1alpha1.RegistrySpec) { spec.Tenants = []string{"somebodyelse"} })
	n.copyHas(name, host, "")
	n.accountHas("own")
}

// TestAnAppThatDeliversTheListKeepsIt: two writers of the same list would undo each other's work for ever.
func TestAnAppThatDeliversTheListKeepsIt(t *testing.T) {
	n := newTeam(t, "listers")
	const name, host = "listed", "listed.example"
	files := shopFiles("shop")
	account := "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}, imagePullSecrets: [{name: own}]}"
	files["projects/shop/apps/account/app.yaml"] = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: account}\nspec: {type: Raw, takeOwnership: true, raw: {manifests: [" + account + "]}}\n"
	n.push(files)
	app := n.app("shop", "account")
	n.ready(app)
	n.source(name, host, "listed-password")
	registry := registryFor(name, host, n.name)
	n.create(registry)
	t.Cleanup(func() { _ = n.admin.Delete(t.Context(), registry) })
	n.copyHas(name, host, "listed-password")

	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HomeNamespace(n.name), Name: "shop"}}
	message := n.until(project, v1alpha1.RegistriesReadyCondition, metav1.ConditionFalse, v1alpha1.AccountDeliveredReason)
	if !strings.Contains(message, "app account delivers the default service account with imagePullSecrets: add kubeop-registry-listed to them in Git") {
		t.Errorf("the message is %q", message)
	}
	before := n.account().ResourceVersion
	n.reconcile(project, app)
	n.accountHas("own")
	if after := n.account().ResourceVersion; after != before {
		t.Errorf("the account was written: its version was %s, and is %s", before, after)
	}
}

// locked is a registry without TLS that gives charts, artifacts and images to who has the password.
type locked struct {
	*ocitest.OCIServer
	t        *testing.T
	password atomic.Value
}

func newLocked(t *testing.T) *locked {
	l := &locked{OCIServer: ocitest.ServeOCI(t, httptest.NewServer), t: t}
	l.Challenge = `Basic realm="registry"`
	l.Allow = func(req *http.Request) bool {
		user, password, _ := req.BasicAuth()
		return user == "robot" && password == l.password.Load()
	}
	return l
}

// publish has the registry serve this version of a chart, an artifact and an image, for this password.
func (l *locked) publish(version, password string) {
	l.t.Helper()
	l.password.Store(password)
	l.PushChart(l.t, version, "application/vnd.cncf.helm.chart.content.v1.tar+gzip", ocitest.ChartArchive(l.t, "web", map[string]string{
		"Chart.yaml":            "apiVersion: v2\nname: web\nversion: " + version + "\n",
		"templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-chart}\ndata: {greeting: {{ .Chart.Version }}}\n",
	}))
	l.PushArtifact(l.t, "manifests", "application/vnd.cncf.flux.content.v1.tar+gzip", ocitest.TarGz(l.t, ocitest.Entry{Name: "a.yaml", Text: configNamed("from-artifact", version)}))
}

// apps are the files of apps with sources in the registry. They name no Secret; more has other fields of the sources.
func (l *locked) apps(more string) map[string]string { return appsOf(l.Listener.Addr().String(), more) }

// appsOf are those of apps with sources in any registry.
func appsOf(host, more string) map[string]string {
	const head = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\nspec:\n  type: %s\n  interval: 1h\n"
	return map[string]string{
		"projects/shop/project.yaml":           fmt.Sprintf(projectFile, "shop"),
		"projects/shop/apps/chart/app.yaml":    fmt.Sprintf(head+"  helm: {repository: '%s', chart: web, version: 1.x%s}\n", "chart", "Helm", "oci://"+host+"/charts", more),
		"projects/shop/apps/artifact/app.yaml": fmt.Sprintf(head+"  git: {oci: {url: '%s/web', tag: manifests%s}}\n", "artifact", "Git", "oci://"+host+"/charts", more),
		"projects/shop/apps/image/app.yaml":    fmt.Sprintf(head+"  image: {reference: '%s/charts/web', replicas: 0, policy: {semver: 1.x}}\n", "image", "Image", host),
	}
}

// delivered waits until the apps have delivered what the registry has of a version.
func (l *locked) delivered(n *team, version string) {
	n.t.Helper()
	n.eventually(func() error {
		image := n.app("shop", "image")
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(image), image); err != nil {
			return err
		}
		if is := image.Status.Image; is == nil || is.Tag != version {
			return fmt.Errorf("the image is %+v: %+v", is, image.Status.Conditions)
		}
		for _, name := range []string{"from-chart", "from-artifact"} {
			config := &corev1.ConfigMap{}
			if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: name}, config); err != nil {
				return err
			}
			if got := config.Data["greeting"]; got != version {
				return fmt.Errorf("%s has version %s, want %s", name, got, version)
			}
		}
		return nil
	})
	n.ready(n.app("shop", "chart"), n.app("shop", "artifact"), n.app("shop", "image"))
}

// silent checks that nothing but the Secrets has a text.
func (n *team) silent(texts ...string) {
	n.t.Helper()
	in := client.InNamespace(n.namespace())
	for what, list := range map[string]client.ObjectList{
		"an App": &v1alpha1.AppList{}, "a Project": &v1alpha1.ProjectList{}, "a Registry": &v1alpha1.RegistryList{}, "a Repository": &v1alpha1.RepositoryList{},
		"an event": &eventsv1.EventList{},
	} {
		var options []client.ListOption
		if what == "an App" {
			options = append(options, in)
		}
		if err := n.admin.List(n.t.Context(), list, options...); err != nil {
			n.t.Fatal(err)
		}
		all, err := json.Marshal(list)
		if err != nil {
			n.t.Fatal(err)
		}
		for _, text := range texts {
			if strings.Contains(string(all), text) {
				n.t.Errorf("%s has %s", what, text)
			}
		}
	}
	for _, text := range texts {
		if strings.Contains(n.log(), text) {
			n.t.Errorf("the log has %s", text)
		}
	}
}

// TestAppsNeedNothingButARegistry for charts, artifacts and images of a registry that wants a password. Another tenant is refused.
func TestAppsNeedNothingButARegistry(t *testing.T) {
	l := newLocked(t)
	n, stranger := newTeam(t, "fetchers"), teamOf(t, "outsiders")
	host := l.Listener.Addr().String()
	l.publish("1.0.0", "early-password")
	n.source("locked", host, "early-password")
	registry := registryFor("locked", host, n.name)
	registry.Spec.Insecure = true
	n.create(registry)
	t.Cleanup(func() { _ = n.admin.Delete(t.Context(), registry) })
	n.push(l.apps(""))
	l.delivered(n, "1.0.0")
	n.podNames("image", "kubeop-registry-locked")

	stranger.push(l.apps(", insecure: true"))
	for _, name := range []string{"chart", "artifact"} {
		message := stranger.until(stranger.app("shop", name), v1alpha1.SourceReadyCondition, metav1.ConditionFalse, v1alpha1.AuthenticationFailedReason)
		if !strings.Contains(message, host+" wants credentials") || !strings.Contains(message, "or ask an administrator of the cluster to let the tenant use a Registry of "+host) {
			t.Errorf("%s: the message is %q", name, message)
		}
	}
	if err := stranger.admin.Get(t.Context(), client.ObjectKey{Namespace: stranger.namespace(), Name: "from-artifact"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("the stranger has the artifact: %v", err)
	}

	l.publish("1.1.0", "later-password")
	image := n.app("shop", "image")
	n.reconcile(image)
	message := n.until(image, v1alpha1.ImageKeptCondition, metav1.ConditionTrue, v1alpha1.AuthenticationFailedReason)
	if !strings.Contains(message, "the credentials are those of Registry locked: ask an administrator of the cluster to correct its Secret") {
		t.Errorf("with the old password: the message is %q", message)
	}
	n.source("locked", host, "later-password")
	n.copyHas("locked", host, "later-password")
	n.reconcile(image)
	l.delivered(n, "1.1.0")

	n.silent("early-password", "later-password", "of-another-host", base64.StdEncoding.EncodeToString([]byte("robot:early-password")), base64.StdEncoding.EncodeToString([]byte("robot:later-password")))
}
