//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

const imagesProject = "kubeop-acme-images"

// TestTheExamplesOfImageAppsRun checks the examples of Image apps on real pods.
func TestTheExamplesOfImageAppsRun(t *testing.T) {
	for _, app := range []string{"worker", "settings", "database", "scaled", "nightly", "migrate", "paths", "policy", "sidecar"} {
		began := time.Now()
		until(t, app+" is ready", func(ctx context.Context) error { return platform.Ready(ctx, &v1alpha1.App{}, imagesProject, app) })
		t.Logf("%s is ready after %.1f s", app, time.Since(began).Seconds())
	}
	for _, app := range []string{"settings", "database", "scaled", "paths", "policy", "sidecar"} {
		answers(t, imagesProject, app, "hello from "+app)
	}
	for what, want := range map[string]string{
		"hpa scaled {.spec.minReplicas}-{.spec.maxReplicas}":                                      "2-3",
		"pdb scaled {.spec.maxUnavailable}":                                                       "1",
		"deployment scaled {.status.readyReplicas}":                                               "2",
		"cronjob nightly {.spec.timeZone}":                                                        "Europe/Berlin",
		"pvc database-data {.status.phase}":                                                       "Bound",
		"ingress paths {.spec.rules[*].host}":                                                     "paths.acme.example www.acme.example",
		"deployment worker {.status.readyReplicas}":                                               "1",
		"deployment database {.spec.strategy.type}":                                               "Recreate",
		"pods -lapp.kubernetes.io/name=sidecar {.items[0].status.initContainerStatuses[*].ready}": "true true",
	} {
		f := strings.SplitN(what, " ", 3)
		if got := kubectl(t, "get", f[0], f[1], "-n", imagesProject, "-o", "jsonpath="+f[2]); got != want {
			t.Errorf("%s is %q, want %q", what, got, want)
		}
	}
	logs := kubectl(t, "logs", "-n", imagesProject, "-l", "app.kubernetes.io/name=migrate")
	if want := "hello from migrate"; !strings.Contains(logs, want) {
		t.Errorf("the Job printed %q, want %q in it", logs, want)
	}
}

// pathOf gets a page of an app.
func pathOf(t *testing.T, app, path, want string) {
	t.Helper()
	until(t, fmt.Sprintf("%s answers %q at %s", app, want, path), func(ctx context.Context) error {
		service := &corev1.Service{}
		if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: imagesProject, Name: app}, service); err != nil {
			return err
		}
		got, err := stage.Get(ctx, "http://"+service.Spec.ClusterIP+path)
		if err == nil && got != want {
			err = fmt.Errorf("%s: it answers %q", http.MethodGet, got)
		}
		return err
	})
}

// edit changes a file of the sample tenant and pushes it.
func edit(t *testing.T, name, old, now string) {
	t.Helper()
	content, err := samples.Acme.Read(name)
	must(t, err)
	must(t, samples.Acme.Write(name, []byte(strings.Replace(string(content), old, now, 1))))
	must(t, samples.Acme.Push(t.Context(), "Change "+name))
}

// TestAConfigFileRollsThePods changes a config file. The folder and the single file must be mounted.
func TestAConfigFileRollsThePods(t *testing.T) {
	pathOf(t, "settings", "/file", "good morning")
	edit(t, "projects/images/apps/settings/conf/greeting.txt", "good morning", "good evening")
	pathOf(t, "settings", "/file", "good evening")
}

// TestDataOutlivesThePod counts the starts in a volume. A new pod must find those of the old pod.
func TestDataOutlivesThePod(t *testing.T) {
	pathOf(t, "database", "/starts", "1")
	edit(t, "projects/images/apps/database/app.yaml", "hello from database", "hello again")
	answers(t, imagesProject, "database", "hello again")
	pathOf(t, "database", "/starts", "2")
}

// TestAJobRunsOncePerRevision changes the Job's message. A new Job must run, and the old one must be deleted.
func TestAJobRunsOncePerRevision(t *testing.T) {
	edit(t, "projects/images/apps/migrate/app.yaml", "hello from migrate", "migrated again")
	until(t, "the other Job ran", func(ctx context.Context) error {
		logs, err := platform.Kubectl(ctx, "logs", "-n", imagesProject, "-l", "app.kubernetes.io/name=migrate")
		if err == nil && logs != "migrated again" {
			err = fmt.Errorf("they printed %q", logs)
		}
		return err
	})
	until(t, "migrate is ready", func(ctx context.Context) error { return platform.Ready(ctx, &v1alpha1.App{}, imagesProject, "migrate") })
}

// TestANewTagIsDeployed pushes an image to the registry and nothing to Git.
func TestANewTagIsDeployed(t *testing.T) {
	_, err := platform.PushHello(t.Context(), "1.1.0")
	must(t, err)
	pushed := time.Now()
	app := &v1alpha1.App{}
	until(t, "policy runs 1.1.0", func(ctx context.Context) error {
		if err := platform.Ready(ctx, app, imagesProject, "policy"); err != nil {
			return err
		}
		if app.Status.Image == nil || app.Status.Image.Tag != "1.1.0" || !strings.Contains(app.Status.Image.Reference, "/hello:1.1.0@sha256:") {
			return fmt.Errorf("it runs %+v", app.Status.Image)
		}
		return nil
	})
	t.Logf("push of the image → ready: %.1f s", time.Since(pushed).Seconds())
	if got := kubectl(t, "get", "deployment", "policy", "-n", imagesProject, "-o", "jsonpath={..image}"); got != app.Status.Image.Reference {
		t.Errorf("it runs %s, want %s", got, app.Status.Image.Reference)
	}
	until(t, "an event reports it", func(ctx context.Context) error {
		events, err := platform.Kubectl(ctx, "get", "events", "-n", imagesProject)
		if err == nil && !strings.Contains(events, "policy: 1.0.0 → 1.1.0") {
			err = fmt.Errorf("they are\n%s", events)
		}
		return err
	})
}
