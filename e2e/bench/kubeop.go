package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

const (
	// tenant has one project with all apps.
	tenant  = "bench"
	project = "shop"
	// operatorUser is the service account of the chart.
	operatorUser = "system:serviceaccount:" + stage.Namespace + ":kubeop"
)

// kubeop is the driver for this checkout's operator, on its own cluster.
type kubeop struct {
	stage      *stage.Stage
	operator   *stage.Operator
	repository *stage.Repository
	// kind is the type of the apps. manifests is the repository from which apps of type Git deliver.
	kind      v1alpha1.AppType
	manifests *stage.Repository
	// chart is the part of helm: that names the chart. inFolder means that the chart is in each app's folder.
	chart    map[string]any
	inFolder bool
	// delivered are the apps of the last commit.
	delivered map[string]bool
}

// bringUp starts the operator with a tenant that has an empty project.
func bringUp(ctx context.Context, s *stage.Stage, kind v1alpha1.AppType, inFolder bool) (*kubeop, error) {
	k := &kubeop{stage: s, kind: kind, inFolder: inFolder, chart: map[string]any{"path": "chart"}, delivered: map[string]bool{}}
	var err error
	// Disable polling: the push hook reports every push.
	if k.operator, err = s.StartOperator(ctx, "PLATFORM_INTERVAL=1h"); err != nil {
		return nil, err
	}
	if kind == v1alpha1.AppHelm && !inFolder {
		if err := k.publishChart(ctx); err != nil {
			return nil, err
		}
	}
	if k.repository, err = k.newRepository(ctx, tenant); err != nil {
		return nil, err
	}
	platform, err := k.newRepository(ctx, v1alpha1.PlatformRepository)
	if err != nil {
		return nil, err
	}
	if err := k.declareTenant(ctx, platform); err != nil {
		return nil, err
	}
	err = stage.Until(ctx, 2*time.Minute, "the project is ready", func(ctx context.Context) error {
		return s.Ready(ctx, &v1alpha1.Project{}, v1alpha1.HomeNamespace(tenant), project)
	})
	if err == nil && kind == v1alpha1.AppGit {
		err = k.makeManifests(ctx)
	}
	return k, err
}

// manifestsSecret holds the Git credentials of apps of type Git.
const manifestsSecret = "manifests"

// makeManifests creates the repository with the manifests of apps of type Git.
func (k *kubeop) makeManifests(ctx context.Context) (err error) {
	if k.manifests, err = k.stage.CreateRepository(ctx, "manifests", rand.Text()); err != nil {
		return err
	}
	return k.stage.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ProjectNamespace(tenant, project), Name: manifestsSecret},
		StringData: map[string]string{"username": k.manifests.User, "password": k.manifests.Password},
	})
}

// publishChart pushes the chart to the cluster's registry.
func (k *kubeop) publishChart(ctx context.Context) error {
	clone := &stage.Repository{Dir: k.stage.Path("charts")}
	if err := writeChart(clone, ""); err != nil {
		return err
	}
	if _, err := k.stage.Helm(ctx, "package", filepath.Join(clone.Dir, "chart"), "--destination", clone.Dir); err != nil {
		return err
	}
	to := "oci://" + k.stage.Cluster.Registry.Host + "/charts"
	archive := filepath.Join(clone.Dir, chartName+"-"+chartVersion+".tgz")
	if _, err := k.stage.Helm(ctx, "push", archive, to, "--plain-http"); err != nil {
		return err
	}
	k.chart = map[string]any{"repository": to, "chart": chartName, "version": chartVersion, "insecure": true}
	return nil
}

// newRepository creates a repository whose pushes call the operator's push hook, and the operator's credentials for it.
func (k *kubeop) newRepository(ctx context.Context, name string) (*stage.Repository, error) {
	key := rand.Text()
	r, err := k.stage.CreateRepository(ctx, name, key)
	if err != nil {
		return nil, err
	}
	if err := k.stage.SetSecret(ctx, name+"-git", map[string]string{"username": r.User, "password": r.Password}); err != nil {
		return nil, err
	}
	return r, k.stage.SetSecret(ctx, name+"-hook", map[string]string{"token": key})
}

func (k *kubeop) declareTenant(ctx context.Context, platform *stage.Repository) error {
	layout := []byte("layout: v1\n")
	// Every release revision is a Secret, and the default quota of 500 is too low for this many apps. The other counts depend on the
	// pods.
	quota := map[string]any{"count/secrets": "1000000", "pods": "100000"}
	err := errors.Join(
		k.repository.Write("kubeop.yaml", layout),
		k.repository.Write("projects/"+project+"/project.yaml", declare("Project", project, map[string]any{"quota": quota})),
		platform.Write("kubeop.yaml", layout),
		platform.Write("tenants/"+tenant+"/tenant.yaml", declare("Tenant", tenant, map[string]any{
			"owners": []any{map[string]any{"kind": "User", "name": "dev", "role": "admin"}}, "quota": quota,
			"limits": map[string]any{"apps": 100_000, "treeBytes": "1Gi"},
			"repository": map[string]any{
				"url": k.repository.OperatorURL, "interval": "1h",
				"secretRef": map[string]any{"name": tenant + "-git"}, "hookSecretRef": map[string]any{"name": tenant + "-hook"},
			},
		})),
	)
	if err != nil {
		return err
	}
	if err := k.repository.Push(ctx, "Begin"); err != nil {
		return err
	}
	return platform.Push(ctx, "Welcome "+tenant)
}

// declare writes a kubeop object to a file in a repository.
func declare(kind, name string, spec map[string]any) []byte {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	})
	if err != nil {
		panic(err) // A map of strings and numbers is always YAML.
	}
	return text
}

// appFile is the app.yaml of an app.
func (k *kubeop) appFile(a app) []byte {
	spec := map[string]any{"type": string(k.kind), "interval": a.Interval.String()}
	switch k.kind {
	case v1alpha1.AppGit:
		spec["git"] = map[string]any{
			"url": k.manifests.OperatorURL, "path": path.Join(turnFolder(a.Turn), a.Name), "secretRef": map[string]any{"name": manifestsSecret},
		}
	case v1alpha1.AppRaw:
		spec["raw"] = map[string]any{"path": turnFolder(a.Turn)}
	default:
		helm := maps.Clone(k.chart)
		helm["values"] = a.values()
		spec["helm"] = helm
	}
	return declare("App", a.Name, spec)
}

// writeManifests writes the manifests of an app without a chart. It keeps the previous turn, which the app uses until its new
// app.yaml is pushed, and removes older ones.
func (k *kubeop) writeManifests(a app) error {
	in, folder := k.repository, func(turn int) string { return path.Join("projects", project, "apps", a.Name, turnFolder(turn)) }
	if k.kind == v1alpha1.AppGit {
		in, folder = k.manifests, func(turn int) string { return path.Join(turnFolder(turn), a.Name) }
	}
	if err := in.Remove(folder(a.Turn - 2)); err != nil {
		return err
	}
	files, err := manifests(a, folder(a.Turn))
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := in.Write(name, content); err != nil {
			return err
		}
	}
	return nil
}

// write writes the files of an app.
func (k *kubeop) write(a app) error {
	folder := path.Join("projects", project, "apps", a.Name)
	if err := k.repository.Write(folder+"/app.yaml", k.appFile(a)); err != nil {
		return err
	}
	switch {
	case k.kind != v1alpha1.AppHelm:
		return k.writeManifests(a)
	case k.inFolder:
		return writeChart(k.repository, folder)
	}
	return nil
}

// deliver commits and pushes.
func (k *kubeop) deliver(ctx context.Context, apps []app) (time.Time, error) {
	left := k.delivered
	k.delivered = map[string]bool{}
	for _, a := range apps {
		if err := k.write(a); err != nil {
			return time.Time{}, err
		}
		k.delivered[a.Name] = true
		delete(left, a.Name)
	}
	for name := range left {
		if err := k.repository.Remove(path.Join("projects", project, "apps", name)); err != nil {
			return time.Time{}, err
		}
	}
	message := fmt.Sprintf("%d apps", len(apps))
	if k.manifests != nil {
		if err := k.manifests.Push(ctx, message); err != nil {
			return time.Time{}, err
		}
	}
	if err := k.repository.Push(ctx, message); err != nil {
		return time.Time{}, err
	}
	if len(apps) == 0 {
		return k.confirm(ctx)
	}
	return time.Now(), nil
}

// confirm confirms a held deletion of many apps. It returns when it did.
func (k *kubeop) confirm(ctx context.Context) (confirmed time.Time, err error) {
	err = stage.Until(ctx, time.Minute, "the removal is noticed", func(ctx context.Context) error {
		confirmed = time.Now()
		apps := &v1alpha1.AppList{}
		if err := k.stage.Client.List(ctx, apps, client.InNamespace(v1alpha1.ProjectNamespace(tenant, project))); err != nil {
			return err
		}
		if len(apps.Items) == 0 || apps.Items[0].DeletionTimestamp != nil {
			return nil
		}
		r := &v1alpha1.Repository{}
		if err := k.stage.Client.Get(ctx, client.ObjectKey{Name: tenant}, r); err != nil {
			return err
		}
		if len(r.Status.Held) == 0 {
			return errors.New("no deletion is held")
		}
		before := client.MergeFrom(r.DeepCopy())
		metav1.SetMetaDataAnnotation(&r.ObjectMeta, v1alpha1.ConfirmAnnotation, r.Status.HeldToken)
		return k.stage.Client.Patch(ctx, r, before)
	})
	return confirmed, err
}

// progress reads an App.
func (k *kubeop) progress(o *unstructured.Unstructured) progress {
	a := &v1alpha1.App{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, a); err != nil {
		return progress{Message: err.Error()}
	}
	p := progress{Handled: a.Status.LastHandledReconcileAt, Message: "not reconciled yet"}
	switch {
	case a.Spec.Git != nil:
		p.Input = inputOf(turnOf(a.Spec.Git.Path), a.Spec.Interval.Duration)
	case a.Spec.Raw != nil:
		p.Input = inputOf(turnOf(a.Spec.Raw.Path), a.Spec.Interval.Duration)
	case a.Spec.Helm != nil && a.Spec.Helm.Values != nil:
		p.Input = inputOf(turnIn(a.Spec.Helm.Values.Raw), a.Spec.Interval.Duration)
	}
	for _, c := range a.Status.Conditions {
		settled := c.Status == metav1.ConditionTrue && c.ObservedGeneration == a.Generation
		switch c.Type {
		case v1alpha1.ReleasedCondition, v1alpha1.AppliedCondition:
			p.Applied = settled
		case v1alpha1.ReadyCondition:
			p.Ready = settled && a.Status.ObservedGeneration == a.Generation
			p.Message, p.Failed = c.Message, c.Status == metav1.ConditionFalse
		}
	}
	return p
}

func (k *kubeop) stop() error { return k.operator.Stop() }

func (k *kubeop) start(ctx context.Context) error { return k.operator.Start(ctx) }

func (k *kubeop) subject() subject {
	config, err := clientcmd.BuildConfigFromFlags("", k.stage.Cluster.Kubeconfig)
	if err != nil {
		panic(err) // The stage has connected with it.
	}
	config.QPS, config.Burst, config.DisableCompression = -1, -1, true
	return subject{
		Config:   config,
		Apps:     place{Resource: v1alpha1.GroupVersion.WithResource("apps"), Namespace: v1alpha1.ProjectNamespace(tenant, project)},
		AuditLog: k.stage.Cluster.AuditLog, Users: []string{operatorUser},
		Metrics: []string{"http://" + k.operator.Metrics + "/metrics"}, Controller: "app", PID: k.operator.PID,
	}
}
