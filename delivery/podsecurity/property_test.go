package podsecurity

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	levels "k8s.io/pod-security-admission/policy"

	"github.com/kubeop/kubeop/delivery/policy"
)

// author writes pods at random.
type author struct{ *rand.Rand }

// maybe sets one of the values, or leaves the field out.
func (a author) maybe(of map[string]any, field string, values ...any) {
	if n := a.IntN(2 * len(values)); n < len(values) {
		of[field] = values[n]
	}
}

func (a author) context(container bool) map[string]any {
	c := map[string]any{}
	a.maybe(c, "runAsNonRoot", true, false)
	a.maybe(c, "runAsUser", int64(0), int64(7))
	a.maybe(c, "seccompProfile", map[string]any{"type": "RuntimeDefault"}, map[string]any{"type": "Unconfined"})
	if !container {
		return c
	}
	a.maybe(c, "allowPrivilegeEscalation", true, false)
	a.maybe(c, "privileged", true, false)
	a.maybe(c, "procMount", "Default", "Unmasked")
	capabilities := map[string]any{}
	a.maybe(capabilities, "drop", []any{"ALL"}, []any{"KILL"}, []any{})
	a.maybe(capabilities, "add", []any{"NET_BIND_SERVICE"}, []any{"CHOWN"}, []any{"SYS_ADMIN"})
	a.maybe(c, "capabilities", capabilities, map[string]any{})
	return c
}

func (a author) containers(kind string) (all []any) {
	for i := range a.IntN(3) {
		c := map[string]any{"name": fmt.Sprint(kind, i)}
		a.maybe(c, "securityContext", a.context(true))
		a.maybe(c, "ports", []any{map[string]any{"hostPort": int64(80), "containerPort": int64(80)}})
		all = append(all, c)
	}
	return all
}

func (a author) deployment() *unstructured.Unstructured {
	spec := map[string]any{"containers": a.containers("c"), "initContainers": a.containers("i"), "ephemeralContainers": a.containers("e")}
	a.maybe(spec, "securityContext", a.context(false))
	a.maybe(spec, "hostUsers", true, false)
	a.maybe(spec, "hostNetwork", true, false)
	a.maybe(spec, "volumes", []any{map[string]any{"name": "v", "hostPath": map[string]any{"path": "/"}}}, []any{map[string]any{"name": "v", "emptyDir": map[string]any{}}})
	if a.IntN(8) == 0 {
		spec["os"] = map[string]any{"name": "windows"}
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}}}
	o.SetAPIVersion("apps/v1")
	o.SetKind("Deployment")
	o.SetName("web")
	return o
}

// rules returns how often each rule is broken.
func rules(t *testing.T, j Judge, object *unstructured.Unstructured) map[string]string {
	t.Helper()
	err := j.Check([]*unstructured.Unstructured{object})
	broken := map[string]string{}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return broken
	}
	for _, one := range joined.Unwrap() {
		var violation *policy.Violation
		if !errors.As(one, &violation) {
			t.Fatalf("no violation: %v", one)
		}
		if strings.HasPrefix(violation.Object, "for ") { // What to do about several rules, said once.
			continue
		}
		var rule string
		if _, err := fmt.Sscanf(violation.Why, "breaks rule %s of", &rule); err != nil || broken[rule] != "" {
			t.Fatalf("said twice, or no rule: %s", violation.Why)
		}
		broken[rule] = violation.Why
	}
	return broken
}

// keeps finds what of before is not in after as it was. An empty list or mapping says as much as none.
func keeps(t *testing.T, path string, before, after any) {
	t.Helper()
	switch was := before.(type) {
	case map[string]any:
		is, _ := after.(map[string]any)
		for key, value := range was {
			keeps(t, path+"/"+key, value, is[key])
		}
	case []any:
		is, _ := after.([]any)
		if len(was) > 0 && len(is) != len(was) {
			t.Fatalf("%s: %v became %v", path, before, after)
		}
		for i := range was {
			keeps(t, fmt.Sprint(path, "/", i), was[i], is[i])
		}
	default:
		if before != after {
			t.Fatalf("%s: %v became %v", path, before, after)
		}
	}
}

func TestToFillWeakensNothing(t *testing.T) {
	a := author{rand.New(rand.NewPCG(14, 2))}
	mended := map[string]int{}
	for range 600 {
		before := a.deployment()
		for _, fill := range []string{FillBaseline, FillRestricted} {
			after := before.DeepCopy()
			filled := Fill([]*unstructured.Unstructured{after}, fill)
			keeps(t, "", before.Object, after.Object)
			for _, minor := range []string{"34", "37"} {
				for _, level := range []string{"baseline", "restricted"} {
					j := Judge{Level: level, Version: VersionOf("1", minor), Tenant: "acme"}
					was, is := rules(t, j, before), rules(t, j, after)
					for rule, why := range is {
						if was[rule] == "" {
							t.Fatalf("filled in at %s, and then it %s:\n%v", fill, why, before.Object)
						}
					}
					if level == fill && len(was) == 0 && level == FillRestricted && len(filled) > 0 {
						t.Fatalf("the level admits it, and it is changed: %v", filled)
					}
					if level == fill {
						mended[level] += len(was) - len(is)
					}
				}
			}
		}
	}
	if mended[FillRestricted] < 50 || mended[FillBaseline] != 0 {
		t.Errorf("rules that are no longer broken: %v", mended)
	}
}

// TestJudgesAsTheAPIServerDoes compares the rules found with what Kubernetes' own evaluator, which the API server calls, makes of a pod.
func TestJudgesAsTheAPIServerDoes(t *testing.T) {
	evaluator, err := levels.NewEvaluator(levels.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := author{rand.New(rand.NewPCG(14, 3))}
	for i := range 2000 {
		object := a.deployment()
		spec, level, version := &corev1.PodSpec{}, []api.Level{api.LevelBaseline, api.LevelRestricted}[i%2], api.MajorMinorVersion(1, 20+i%20)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(podOf(object).Spec, spec); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, result := range evaluator.EvaluatePod(api.LevelVersion{Level: level, Version: version}, &metav1.ObjectMeta{}, spec) {
			if !result.Allowed {
				want = append(want, result.ForbiddenReason)
			}
		}
		if got := rules(t, Judge{Level: string(level), Version: version}, object); len(got) != len(want) {
			t.Fatalf("at %s of %s got %v, want %v:\n%v", level, version, got, want, object.Object)
		}
	}
}
