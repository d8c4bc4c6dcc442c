package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// fluxSettings define how to reach a cluster with Flux, and how to count requests there.
type fluxSettings struct {
	kind, namespace             string
	chartURL                    string
	insecure                    bool
	gitURL, gitBranch, gitClone string
	auditLog, users, metrics    string
}

func (f *fluxSettings) flags(set *flag.FlagSet) {
	set.StringVar(&f.kind, "flux-kind", helmRelease, "flux: what stands for an app, HelmRelease or Kustomization")
	set.StringVar(&f.namespace, "flux-namespace", "bench", "flux: namespace of all objects, which must not exist or be empty")
	set.StringVar(&f.chartURL, "chart-url", "", "flux: oci:// path or https:// repository that has the chart of e2e/bench/chart")
	set.BoolVar(&f.insecure, "chart-insecure", false, "flux: the oci:// registry speaks plain HTTP")
	set.StringVar(&f.gitURL, "git-url", "", "flux: URL at which Flux clones the repository of Kustomizations")
	set.StringVar(&f.gitClone, "git-clone", "", "flux: a clone of that repository from which git push works")
	set.StringVar(&f.gitBranch, "git-branch", "main", "flux: branch of both")
	set.StringVar(&f.auditLog, "audit-log", "", "flux: the API server's audit log; without it requests are counted by -metrics, not by kind")
	set.StringVar(&f.users, "users", "system:serviceaccount:flux-system:", "flux: users to count, comma-separated; one that ends in : is a prefix")
	set.StringVar(&f.metrics, "metrics", "", "flux: URLs of the controllers' metrics, comma-separated")
}

func (f *fluxSettings) check() error {
	switch {
	case f.kind != helmRelease && f.kind != kustomization:
		return fmt.Errorf("-flux-kind is %q; it may be %s or %s", f.kind, helmRelease, kustomization)
	case f.kind == helmRelease && f.chartURL == "":
		return errors.New("a HelmRelease needs -chart-url")
	case f.kind == kustomization && (f.gitURL == "" || f.gitClone == ""):
		return errors.New("a Kustomization needs -git-url and -git-clone")
	case f.metrics == "":
		return errors.New("-driver flux needs -metrics, to see how often the controllers looked")
	}
	return nil
}

// flux is the driver for a cluster with Flux. It applies sources and apps, and pushes the manifests of Kustomizations.
type flux struct {
	fluxSettings
	config *rest.Config
	client dynamic.Interface

	delivered map[string]bool
	mu        sync.Mutex
	// turns are the turns of apps by pushed commit.
	turns map[string]map[string]int
}

// connect connects to kubectl's current cluster.
func (f *fluxSettings) connect(ctx context.Context) (*flux, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster of $KUBECONFIG: %w", err)
	}
	config.QPS, config.Burst, config.DisableCompression = -1, -1, true
	return newFlux(ctx, *f, config)
}

// newFlux creates the namespace of the apps.
func newFlux(ctx context.Context, f fluxSettings, config *rest.Config) (*flux, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": f.namespace},
	}}
	_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("making the namespace: %w", err)
	}
	return &flux{fluxSettings: f, config: config, client: client, delivered: map[string]bool{}, turns: map[string]map[string]int{}}, nil
}

// deliver pushes the manifests, if there are any, and applies the objects. It returns the time before it applies, because applying many objects
// takes long.
func (f *flux) deliver(ctx context.Context, apps []app) (time.Time, error) {
	if f.kind == kustomization && len(apps) > 0 {
		if err := f.push(ctx, apps); err != nil {
			return time.Time{}, err
		}
	}
	began := time.Now()
	source := f.source()
	if f.kind == kustomization {
		// Flux's receiver for push hooks does the same.
		source.SetAnnotations(map[string]string{"reconcile.fluxcd.io/requestedAt": began.Format(time.RFC3339Nano)})
	}
	if err := f.apply(ctx, source); err != nil {
		return began, err
	}
	left := f.delivered
	f.delivered = map[string]bool{}
	for _, a := range apps {
		if err := f.apply(ctx, f.app(a)); err != nil {
			return began, err
		}
		f.delivered[a.Name] = true
		delete(left, a.Name)
	}
	for name := range left {
		if err := f.at(f.kind).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return began, fmt.Errorf("deleting %s: %w", name, err)
		}
	}
	return began, nil
}

func (f *flux) at(kind string) dynamic.ResourceInterface {
	return f.client.Resource(resources[kind]).Namespace(f.namespace)
}

func (f *flux) apply(ctx context.Context, o *unstructured.Unstructured) error {
	if _, err := f.at(o.GetKind()).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "bench", Force: true}); err != nil {
		return fmt.Errorf("applying %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// push commits and pushes the manifests of all apps. It records the turns of the commit before Flux can fetch it.
func (f *flux) push(ctx context.Context, apps []app) error {
	turns := map[string]int{}
	for _, a := range apps {
		files, err := manifests(a, fluxFolder(a.Name))
		if err != nil {
			return err
		}
		for name, content := range files {
			file := filepath.Join(f.gitClone, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return fmt.Errorf("writing %s: %w", name, err)
			}
			if err := os.WriteFile(file, content, 0o644); err != nil {
				return fmt.Errorf("writing %s: %w", name, err)
			}
		}
		turns[a.Name] = a.Turn
	}
	for _, args := range [][]string{{"add", "--all", fluxFolder("")}, {"commit", "--quiet", "--allow-empty", "--message", "Measure"}} {
		if _, err := f.git(ctx, args...); err != nil {
			return err
		}
	}
	commit, err := f.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.turns[commit] = turns
	f.mu.Unlock()
	_, err = f.git(ctx, "push", "--quiet", "origin", "HEAD:"+f.gitBranch)
	return err
}

// git runs git in the clone, with the user's configuration.
func (f *flux) git(ctx context.Context, args ...string) (string, error) {
	var complaint bytes.Buffer
	command := exec.CommandContext(ctx, "git", append([]string{"-C", f.gitClone}, args...)...)
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

func (f *flux) progress(o *unstructured.Unstructured) progress {
	s := &fluxStatus{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, s); err != nil {
		return progress{Message: err.Error()}
	}
	if f.kind == helmRelease {
		return s.progress(s.Spec.Values.Turn)
	}
	// A revision is "<branch>@sha1:<commit>".
	_, commit, _ := strings.Cut(s.Status.LastAppliedRevision, ":")
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.progress(f.turns[commit][s.Metadata.Name])
}

func (f *flux) stop() error { return errNoRestart }

func (f *flux) start(context.Context) error { return errNoRestart }

func (f *flux) subject() subject {
	return subject{
		Config: f.config, Apps: place{Resource: resources[f.kind], Namespace: f.namespace},
		AuditLog: f.auditLog, Users: strings.Split(f.users, ","), Metrics: strings.Split(f.metrics, ","),
		// Flux names each of its controllers after the kind.
		Controller: strings.ToLower(f.kind), PID: func() int { return 0 },
	}
}
