package jobs

import (
	"cmp"
	"math"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/render/workload"
)

func run(change func(*Run)) *Run {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web", UID: "1"}}
	r := &Run{App: app, Phase: Pre, Hook: &v1alpha1.Hook{Name: "migrate", Image: "none.example/m"}, Input: "0123", Revision: "main@sha1:1"}
	if change != nil {
		change(r)
	}
	return r
}

func TestTheNameOfAJobFollowsItsInput(t *testing.T) {
	plain := run(nil).Name()
	if !strings.HasPrefix(plain, "web-migrate-") || len(plain) != len("web-migrate-")+8 || plain != run(nil).Name() {
		t.Errorf("got %s", plain)
	}
	seen := map[string]string{plain: "plain"}
	for name, change := range map[string]func(*Run){
		"another input": func(r *Run) { r.Input = "4567" },
		"another phase": func(r *Run) { r.Phase = Post },
		"a second try":  func(r *Run) { r.Input = Again(r.Input, "now") },
		"long names":    func(r *Run) { r.App.Name, r.Hook.Name = strings.Repeat("a", 53), strings.Repeat("b", 40) },
		"long, other":   func(r *Run) { r.App.Name, r.Hook.Name = strings.Repeat("a", 53), strings.Repeat("b", 39)+"c" },
	} {
		got := run(change).Name()
		if len(got) > maxName || seen[got] != "" {
			t.Errorf("%s: got %s, of %d characters, as %s has it", name, got, len(got), seen[got])
		}
		seen[got] = name
	}
}

func TestTheInputOfAHookJobIsItsHookAndTheDeliveredRevision(t *testing.T) {
	hook := &v1alpha1.Hook{Name: "migrate", Image: "none.example/m"}
	of := func(delivered any, phase string, hook *v1alpha1.Hook) string {
		t.Helper()
		sum, err := Digest(delivered)
		if err != nil {
			t.Fatal(err)
		}
		input, err := InputOf(sum, phase, hook)
		if err != nil {
			t.Fatal(err)
		}
		return input
	}
	first := of(map[string]any{"a": 1, "b": 2}, Pre, hook)
	if first != of(map[string]any{"b": 2, "a": 1}, Pre, hook.DeepCopy()) {
		t.Error("the same twice is not the same")
	}
	changed := hook.DeepCopy()
	changed.Args = []string{"up"}
	for name, other := range map[string]string{
		"other objects": of(map[string]any{"a": 1, "b": 3}, Pre, hook), "another phase": of(map[string]any{"a": 1, "b": 2}, Post, hook),
		"another hook": of(map[string]any{"a": 1, "b": 2}, Pre, changed),
	} {
		if other == first {
			t.Errorf("%s make no other input", name)
		}
	}
}

func TestAJobRunsItsHookWithoutRights(t *testing.T) {
	r := run(func(r *Run) {
		r.Hook.Timeout = &metav1.Duration{Duration: 90 * time.Second}
		r.Hook.Env = []corev1.EnvVar{{Name: "KUBEOP_REVISION", Value: "forged"}, {Name: "A", Value: "b"}}
	})
	r.Hook.Command, r.Hook.Args = []string{"migrate"}, []string{"up"}
	r.Hook.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
	made, err := r.Job()
	if err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(made.Object, job); err != nil {
		t.Fatal(err)
	}
	pod := job.Spec.Template.Spec
	c := pod.Containers[0]
	if *job.Spec.BackoffLimit != 0 || job.Spec.PodFailurePolicy != nil || pod.RestartPolicy != corev1.RestartPolicyNever || *pod.ActiveDeadlineSeconds != 90 || *job.Spec.ActiveDeadlineSeconds != 105 {
		t.Errorf("the Job is %+v", job.Spec)
	}
	if !*pod.SecurityContext.RunAsNonRoot || *pod.AutomountServiceAccountToken || *c.SecurityContext.AllowPrivilegeEscalation {
		t.Errorf("the pod may too much: %+v", pod)
	}
	env := []corev1.EnvVar{{Name: "KUBEOP_REVISION", Value: "main@sha1:1"}, {Name: "A", Value: "b"}}
	if diff := gocmp.Diff(corev1.Container{Command: r.Hook.Command, Args: r.Hook.Args, Env: env, EnvFrom: r.Hook.EnvFrom}, corev1.Container{Command: c.Command, Args: c.Args, Env: c.Env, EnvFrom: c.EnvFrom}); diff != "" {
		t.Errorf("what runs (-want +got):\n%s", diff)
	}
	owner := []metav1.OwnerReference{{APIVersion: "paas.kubeop.io/v1alpha1", Kind: "App", Name: "web", UID: "1"}}
	want := batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: r.Name(), OwnerReferences: owner}}
	if diff := gocmp.Diff(want, batchv1.Job{TypeMeta: job.TypeMeta, ObjectMeta: job.ObjectMeta}); diff != "" {
		t.Errorf("the object (-want +got):\n%s", diff)
	}
	if r.Is(made) {
		t.Error("it is known before it is marked")
	}
	made.SetLabels(map[string]string{v1alpha1.AppLabel: "web"})
	r.Mark(made)
	if !r.Is(made) || run(func(r *Run) { r.Input = "4567" }).Is(made) {
		t.Error("it is not known again")
	}
	for _, label := range []string{v1alpha1.AppLabel, v1alpha1.HookLabel} {
		other := made.DeepCopy()
		labels := other.GetLabels()
		labels[label] = "other"
		other.SetLabels(labels)
		if r.Is(other) {
			t.Errorf("it is known with another label %s", label)
		}
	}
	if _, err := run(func(r *Run) { r.Hook.Image = "" }).Job(); err == nil || !strings.Contains(err.Error(), "pre hook migrate has no image") {
		t.Errorf("without an image: %v", err)
	}
}

func TestAHookRunsAsLongAsItSaysOrItsAppDoes(t *testing.T) {
	minute, second := metav1.Duration{Duration: time.Minute}, &metav1.Duration{Duration: time.Second}
	for name, c := range map[string]struct {
		app  metav1.Duration
		hook *metav1.Duration
		want time.Duration
	}{
		"nothing":  {metav1.Duration{}, nil, (&v1alpha1.AppSpec{}).Within()},
		"the app":  {minute, nil, time.Minute},
		"the hook": {minute, second, time.Second},
	} {
		r := run(func(r *Run) { r.App.Spec.Timeout, r.Hook.Timeout = c.app, c.hook })
		if got := r.Timeout(); got != c.want || got == 0 {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestAHookOfAnImageAppPullsAsTheAppDoes(t *testing.T) {
	r := run(func(r *Run) {
		r.Hook.Image, r.Image = "", "none.example/web:1"
		r.App.Spec.Image = &v1alpha1.ImageSource{PullSecrets: []v1alpha1.LocalSecretReference{{Name: "registry"}}, ImagePullPolicy: corev1.PullAlways}
	})
	made, err := r.Job()
	if err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(made.Object, job); err != nil {
		t.Fatal(err)
	}
	pod := job.Spec.Template.Spec
	if c := pod.Containers[0]; c.Image != "none.example/web:1" || c.ImagePullPolicy != corev1.PullAlways || len(pod.ImagePullSecrets) != 1 || pod.ImagePullSecrets[0].Name != "registry" {
		t.Errorf("the pod is %+v", pod)
	}
	if _, there := made.Object["status"]; there || len(made.GetOwnerReferences()) != 1 || made.GetOwnerReferences()[0].UID != "1" {
		t.Errorf("the Job is %v", made.Object)
	}
	r.Mark(made)
	if got := made.GetLabels()[v1alpha1.HookLabel]; got != "pre-migrate" {
		t.Errorf("a Job without labels is marked %q", got)
	}
}

// TestAHookPullsFromARegistryAsTheAppDoes: the pod of an Image app's hook names the Secret of its image's registry, because with an account
// or pull Secrets of its own it gets none from the default account.
func TestAHookPullsFromARegistryAsTheAppDoes(t *testing.T) {
	registries := []v1alpha1.PullSecret{{Registry: "hub", Host: "docker.io"}, {Registry: "mine", Host: "none.example"}}
	for name, c := range map[string]struct {
		image string
		own   *v1alpha1.ImageSource
		want  []string
	}{
		"with an account":    {"", &v1alpha1.ImageSource{ImagePod: v1alpha1.ImagePod{ServiceAccountName: "web"}}, []string{"kubeop-registry-mine"}},
		"with a pull Secret": {"", &v1alpha1.ImageSource{PullSecrets: []v1alpha1.LocalSecretReference{{Name: "own"}}}, []string{"own", "kubeop-registry-mine"}},
		"with another image": {"busybox", &v1alpha1.ImageSource{}, []string{"kubeop-registry-hub"}},
		"without a Registry": {"other.example/web", &v1alpha1.ImageSource{}, nil},
		"of another type":    {"none.example/web", nil, nil},
	} {
		r := run(func(r *Run) {
			r.Hook.Image, r.Image, r.App.Spec.Image, r.PullSecrets = c.image, "none.example/web:1", c.own, registries
		})
		made, err := r.Job()
		if err != nil {
			t.Fatal(err)
		}
		named, _, _ := unstructured.NestedSlice(made.Object, "spec", "template", "spec", "imagePullSecrets")
		var got []string
		for _, ref := range named {
			got = append(got, ref.(map[string]any)["name"].(string))
		}
		if diff := gocmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: the pod names (-want +got):\n%s", name, diff)
		}
	}
}

// TestAHookRunsTheImageOfItsAppAsTheAppDoes: with its user, account, resources and nodes. Another image has another user.
func TestAHookRunsTheImageOfItsAppAsTheAppDoes(t *testing.T) {
	user, group := int64(1000), int64(2000)
	nodes := &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}}}
	own := &v1alpha1.ImageSource{
		Security:  v1alpha1.ImageSecurity{RunAsUser: &user, RunAsGroup: &group, ReadOnlyRootFilesystem: true},
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}},
		ImagePod: v1alpha1.ImagePod{
			ServiceAccountName: "web", AutomountServiceAccountToken: true, NodeSelector: map[string]string{"disk": "fast"}, Tolerations: []corev1.Toleration{{Key: "team"}},
			Affinity: &corev1.Affinity{NodeAffinity: nodes, PodAntiAffinity: &corev1.PodAntiAffinity{}},
		},
	}
	for name, tc := range map[string]struct {
		image string
		own   *v1alpha1.ImageSource
		same  *v1alpha1.ImageSource // runs as this
	}{
		"the app's image": {"", own, &v1alpha1.ImageSource{Security: own.Security, Resources: own.Resources, ImagePod: v1alpha1.ImagePod{
			ServiceAccountName: "web", AutomountServiceAccountToken: true, NodeSelector: own.NodeSelector, Tolerations: own.Tolerations, Affinity: &corev1.Affinity{NodeAffinity: nodes},
		}}},
		"without affinity": {"", &v1alpha1.ImageSource{Security: own.Security}, &v1alpha1.ImageSource{Security: own.Security}},
		"another image":    {"none.example/m", own, &v1alpha1.ImageSource{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(func(r *Run) { r.Hook.Image, r.Image, r.App.Spec.Image = tc.image, "none.example/web:1", tc.own })
			made, err := r.Job()
			if err != nil {
				t.Fatal(err)
			}
			job := &batchv1.Job{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(made.Object, job); err != nil {
				t.Fatal(err)
			}
			tc.same.Reference, tc.same.Env = cmp.Or(tc.image, r.Image), r.environment()
			want := workload.Pod("migrate", tc.same, nil)
			want.ActiveDeadlineSeconds = job.Spec.Template.Spec.ActiveDeadlineSeconds
			if diff := gocmp.Diff(want, job.Spec.Template.Spec); diff != "" {
				t.Errorf("the pod (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAJobOutOfTimeIsOneThatFailedForIt(t *testing.T) {
	for name, c := range map[string]struct {
		kind, status, reason string
		want                 bool
	}{
		"out of time":               {"Failed", "True", "DeadlineExceeded", true},
		"failed":                    {"Failed", "True", "BackoffLimitExceeded", false},
		"not failed":                {"Failed", "False", "DeadlineExceeded", false},
		"complete":                  {"Complete", "True", "DeadlineExceeded", false},
		"complete, and nothing why": {"Complete", "True", "", false},
	} {
		job := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": c.kind, "status": c.status, "reason": c.reason}}}}}
		if got := OutOfTime(job); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestSealedInputsKeepTheMarkOfARetry(t *testing.T) {
	seal := digest.Seal(func(text string) string { return "sealed:" + sum(text) })
	if got, want := Sealed("0123", seal), seal.Short("0123"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	again := Again("0123", "now")
	if got, want := Sealed(again, seal), seal.Short("0123")+again[len("0123"):]; got != want || again == "0123" {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := Digest(math.Inf(1)); err == nil || !strings.HasPrefix(err.Error(), "encoding what is delivered: ") {
		t.Errorf("got %v", err)
	}
}

func TestTheImageOfAnAppIsThatOfItsFirstWorkload(t *testing.T) {
	container := []any{map[string]any{"image": "web:1"}}
	deployment := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": container}}}}}
	service := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service"}}
	empty := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
	nameless := deployment.DeepCopy()
	_ = unstructured.SetNestedSlice(nameless.Object, []any{map[string]any{"name": "web"}}, "spec", "template", "spec", "containers")
	if got := ImageOf([]*unstructured.Unstructured{service, empty, nameless, deployment}); got != "web:1" {
		t.Errorf("got %q, want %q", got, "web:1")
	}
	pod := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"image": "first:1"}, map[string]any{"image": "second:1"}}}}
	for kind, spec := range map[string]map[string]any{
		"apps/v1 Deployment": {"template": pod}, "batch/v1 Job": {"template": pod}, "batch/v1 CronJob": {"jobTemplate": map[string]any{"spec": map[string]any{"template": pod}}},
	} {
		apiVersion, kind, _ := strings.Cut(kind, " ")
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
		if got := ImageOf([]*unstructured.Unstructured{o, deployment}); got != "first:1" {
			t.Errorf("of a %s: got %q, want that of its first container", kind, got)
		}
	}
	if got := ImageOf([]*unstructured.Unstructured{service}); got != "" {
		t.Errorf("got %q, want none", got)
	}
}

// TestAJobOfAnEarlierVersionIsRecognised: earlier versions of kubeop recorded the input of a Job without a seal. A Job of another input, or
// sealed with another key, is not the same.
func TestAJobOfAnEarlierVersionIsRecognised(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "web", UID: "1"}}
	hook := &v1alpha1.Hook{Name: "migrate", Image: "none.example/migrate"}
	keyed := func(key string) digest.Seal { return func(digest string) string { return sum(key, digest) } }
	seal, other := keyed("one"), keyed("other")
	made := func(input string) *unstructured.Unstructured {
		t.Helper()
		run := Run{App: app, Phase: Pre, Hook: hook, Input: input}
		job, err := run.Job()
		if err != nil {
			t.Fatal(err)
		}
		job.SetLabels(map[string]string{v1alpha1.AppLabel: "web"})
		run.Mark(job)
		return job
	}
	now := Run{App: app, Phase: Pre, Hook: hook, Input: Sealed("0123456789abcdef", seal), Seal: seal}
	if now.Input == "0123456789abcdef" || now.Name() == (&Run{App: app, Phase: Pre, Hook: hook, Input: "0123456789abcdef"}).Name() {
		t.Errorf("input %s and name %s are not sealed", now.Input, now.Name())
	}
	for name, c := range map[string]struct {
		job  *unstructured.Unstructured
		want bool
	}{
		"its own": {made(now.Input), true}, "an earlier version's": {made("0123456789abcdef"), true},
		"of another input": {made(Sealed("1123456789abcdef", seal)), false}, "of another key": {made(Sealed("0123456789abcdef", other)), false},
	} {
		if got := now.Is(c.job); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
	renamed := made("0123456789abcdef")
	renamed.SetName(now.Name())
	if now.Is(renamed) {
		t.Error("a Job whose name is not that of its input is taken for the run")
	}
}
