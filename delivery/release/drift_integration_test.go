package release

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/metadata"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// drifting is a chart with a field of each kind that drifts.
func drifting() map[string]string {
	return map[string]string{
		"templates/all.yaml": strings.Replace(allAt("1"), `cpu: "1"`, "cpu: 1000m", 1) +
			"---\napiVersion: v1\nkind: Secret\nmetadata: {name: web}\nstringData: {token: hunter22}\n",
	}
}

func (t *team) editDeployment(edit func(*appsv1.Deployment)) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		d := t.deployment()
		edit(d)
		_, err := t.admin.AppsV1().Deployments(t.namespace).Update(t.Context(), d, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDriftOfAReleaseIsReportedOrCorrected(t *testing.T) {
	replicas := int32(2)
	deployment := func(fields ...differ.Change) []cluster.Difference {
		return []cluster.Difference{{Object: "Deployment/web", Fields: fields}}
	}
	tests := map[string]struct {
		edit   func(*team)
		ignore []v1alpha1.IgnoreRule
		want   []cluster.Difference
	}{
		"none": {func(*team) {}, nil, nil},
		"a field": {
			func(tm *team) {
				c := tm.configMap("web")
				c.Data["v"] = "mine"
				tm.update(c)
			}, nil, []cluster.Difference{{Object: "ConfigMap/web", Fields: []differ.Change{{Path: "/data/v", Want: `"1"`, Have: `"mine"`}}}},
		},
		"what the chart does not set": {
			func(tm *team) {
				c := tm.configMap("web")
				c.Data["other"], c.Labels["mine"] = "mine", "yes"
				tm.update(c)
			}, nil, nil,
		},
		"deleted": {
			func(tm *team) {
				if err := tm.admin.CoreV1().Services(tm.namespace).Delete(tm.Context(), "web", metav1.DeleteOptions{}); err != nil {
					tm.Fatal(err)
				}
			}, nil, []cluster.Difference{{Object: "Service/web", Missing: true}},
		},
		"in a list": {
			func(tm *team) {
				tm.editDeployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:mine" })
			}, nil, deployment(differ.Change{Path: "/spec/template/spec/containers/0/image", Want: `"web:v1"`, Have: `"web:mine"`}),
		},
		"scaled by hand": {
			func(tm *team) { tm.editDeployment(func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas }) },
			nil, deployment(differ.Change{Path: "/spec/replicas", Want: "0", Have: "2"}),
		},
		"scaled by hand, ignored": {
			func(tm *team) { tm.editDeployment(func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas }) },
			[]v1alpha1.IgnoreRule{{Paths: []string{"/spec/replicas"}, Target: &kustomize.Selector{Kind: "Deployment"}}}, nil,
		},
		"scaled by an autoscaler": {func(tm *team) { tm.scale(2) }, nil, nil},
		"a secret": {
			func(tm *team) {
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "web"}, StringData: map[string]string{"token": "stolen99"}}
				old, err := tm.admin.CoreV1().Secrets(tm.namespace).Get(tm.Context(), "web", metav1.GetOptions{})
				if err != nil {
					tm.Fatal(err)
				}
				s.ObjectMeta = old.ObjectMeta
				if _, err := tm.admin.CoreV1().Secrets(tm.namespace).Update(tm.Context(), s, metav1.UpdateOptions{}); err != nil {
					tm.Fatal(err)
				}
			}, nil, []cluster.Difference{{Object: "Secret/web", Fields: []differ.Change{{Path: "/data/token", Want: "***", Have: "***"}}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			r := tm.request(sources.ChartFolder(drifting()))
			r.Ignore = test.ignore
			out := tm.deploy(r)
			test.edit(tm)
			var refs []cluster.Ref
			for _, a := range out.Deployed.Objects {
				refs = append(refs, a.Ref)
			}
			before := tm.settled()
			want := test.want
			for range 2 {
				got, err := tm.Drift(t.Context(), r, refs, false)
				if diff := cmp.Diff(want, got); err != nil || diff != "" && len(want)+len(got) > 0 {
					t.Errorf("%v, %s", err, diff)
				}
			}
			if diff := cmp.Diff(before, tm.versions()); diff != "" {
				t.Errorf("looking wrote something: %s", diff)
			}
			got, err := tm.Drift(t.Context(), r, refs, true)
			if err != nil || len(got) != len(want) {
				t.Fatalf("%v, %v", got, err)
			}
			for _, d := range got {
				if d.Applied == nil || d.Applied.Live == nil || d.Applied.Live.GetResourceVersion() == "" {
					t.Errorf("%s was not corrected: %v", d.Object, d.Applied)
				}
			}
			if again, err := tm.Drift(t.Context(), r, refs, false); err != nil || len(again) > 0 {
				t.Errorf("after correcting: %v, %v", again, err)
			}
			if left := tm.deploy(r); left.Release.Revision != 1 {
				t.Errorf("revision %d, want 1", left.Release.Revision)
			}
		})
	}
}

// What somebody else writes between the look and the question is not a difference of the app's.
func TestWritesOfOthersDuringTheComparisonAreNoDrift(t *testing.T) {
	tm := newTeam(t)
	r := tm.request(sources.ChartFolder(drifting()))
	tm.deploy(r)
	tm.editDeployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:mine" })
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"moved":"%d"}}}`, i)
			_, err := tm.admin.AppsV1().Deployments(tm.namespace).Patch(ctx, "web", types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	want := []cluster.Difference{{Object: "Deployment/web", Fields: []differ.Change{{Path: "/spec/template/spec/containers/0/image", Want: `"web:v1"`, Have: `"web:mine"`}}}}
	for range 50 {
		got, err := tm.Drift(t.Context(), r, []cluster.Ref{{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: tm.namespace, Name: "web"}}, false)
		if errors.Is(err, metadata.ErrChanging) {
			continue
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v, %s", err, diff)
		}
	}
	stop()
	writer.Wait()
}

func TestDriftNeedsAnObjectToCompare(t *testing.T) {
	tm := newTeam(t)
	r := tm.request(sources.ChartFolder(drifting()))
	tm.deploy(r)
	got, err := tm.Drift(t.Context(), r, []cluster.Ref{{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: tm.namespace, Name: "other"}}, true)
	if err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
	r.Ignore = []v1alpha1.IgnoreRule{{Paths: []string{""}, Target: &kustomize.Selector{Name: "["}}}
	if _, err := tm.Drift(t.Context(), r, nil, false); !errors.Is(err, fault.ErrRender) {
		t.Errorf("a broken rule: %v", err)
	}
}
