package health

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func checks(t *testing.T, change func(*kustomize.CustomHealthCheck)) *Checks {
	t.Helper()
	spec := kustomize.CustomHealthCheck{APIVersion: "apps/v1", Kind: "Deployment", HealthCheckExpressions: kustomize.HealthCheckExpressions{
		InProgress: "has(metadata.annotations) && metadata.annotations['state'] == 'busy'",
		Failed:     "has(metadata.annotations) && metadata.annotations['state'] == 'broken'",
		Current:    "metadata.annotations['state'] == 'done'",
	}}
	if change != nil {
		change(&spec)
	}
	made, err := NewChecks([]kustomize.CustomHealthCheck{spec})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func in(state string) *appsv1.Deployment {
	return deployment(func(d *appsv1.Deployment) { d.Annotations = map[string]string{"state": state} })
}

func TestChecksJudgeInThePlaceOfKstatus(t *testing.T) {
	cases := map[string]struct {
		live   client.Object
		change func(*kustomize.CustomHealthCheck)
		want   Verdict
	}{
		"current":     {live: in("done")},
		"in progress": {live: in("busy"), want: Verdict{Waiting: []string{"Deployment/web: is in progress, as healthCheckExprs say"}}},
		"failed":      {live: in("broken"), want: Verdict{Failed: []string{"Deployment/web: failed, as healthCheckExprs say"}, Final: true}},
		"failed, and says why": {live: unstructuredOf(t, deployment(func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{"state": "broken"}
			says("Ready", "False", "Broken", "the disk is full")(d)
		})), want: Verdict{Failed: []string{"Deployment/web: failed, as healthCheckExprs say: the disk is full"}, Final: true}},
		"is being deleted": {live: deployment(func(d *appsv1.Deployment) {
			d.DeletionTimestamp, d.Finalizers = new(at(1)), []string{"x/y"}
		}), want: Verdict{Waiting: []string{"Deployment/web: is being deleted"}}},
		"nothing is true":  {live: in("odd"), want: Verdict{Waiting: []string{"Deployment/web: is in progress, as healthCheckExprs say"}}},
		"lacks the field":  {live: deployment(available), want: Verdict{Waiting: []string{"Deployment/web: is in progress, as healthCheckExprs say"}}},
		"cannot be judged": {live: in("1"), change: func(c *kustomize.CustomHealthCheck) { c.Failed = "metadata.name > 1" }, want: Verdict{Failed: []string{"Deployment/web: cannot be judged by healthCheckExprs: failed: no such overload"}}},
		"a bomb":           {live: in("1"), change: func(c *kustomize.CustomHealthCheck) { c.Failed = bomb }, want: Verdict{Failed: []string{"Deployment/web: cannot be judged by healthCheckExprs: failed: the expression costs more than the limit of 50000"}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{objects: []client.Object{c.live}}
			e := w.explainer(t)
			e.Checks = checks(t, c.change)
			for range 3 {
				got, err := Look(t.Context(), e, watch(t, c.live), []Ref{refTo(c.live)})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
			if asked := w.requests(); asked != "Get:1" {
				t.Errorf("three looks at one version asked %s, want %q", asked, "Get:1")
			}
			got, err := Look(t.Context(), e, blind, []Ref{refTo(c.live)})
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("without a watch: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestChecksJudgeEachObjectByItself, although two have the same version.
func TestChecksJudgeEachObjectByItself(t *testing.T) {
	well, ill := in("done"), in("broken")
	ill.Name, ill.UID = "api", "api-uid"
	e := (&world{objects: []client.Object{well, ill}}).explainer(t)
	e.Checks = checks(t, nil)
	for range 2 {
		v, err := Look(t.Context(), e, watch(t, well, ill), []Ref{refTo(well), refTo(ill)})
		if want := "Deployment/api: failed, as healthCheckExprs say"; err != nil || v.String() != want {
			t.Errorf("got %q, %v, want %q", v, err, want)
		}
	}
}

func TestChecksOfAnObjectThatIsGone(t *testing.T) {
	w := &world{}
	e := w.explainer(t)
	e.Checks = checks(t, nil)
	v, err := Look(t.Context(), e, blind, []Ref{refTo(deployment())})
	if want := "Deployment/web: was deleted"; err != nil || v.String() != want {
		t.Errorf("got %q, %v, want %q", v, err, want)
	}
	w.fails = map[string]error{"Get": errors.New("away")}
	if v, err := Look(t.Context(), e, blind, []Ref{refTo(deployment())}); err == nil || !strings.Contains(err.Error(), "reading Deployment/web: away") {
		t.Errorf("got %q, %v", v, err)
	}
}

func TestChecksCacheNoMoreThanTheirLimit(t *testing.T) {
	live := in("done")
	e := (&world{objects: []client.Object{live}}).explainer(t)
	for kept, before := range map[int]int{1: maxCached, maxCached: maxCached - 1} {
		e.Checks = checks(t, nil)
		for i := range before {
			e.Checks.cache[Ref{Key: client.ObjectKey{Name: strconv.Itoa(i)}}] = cachedVerdict{}
		}
		if _, err := Look(t.Context(), e, watch(t, live), []Ref{refTo(live)}); err != nil || len(e.Checks.cache) != kept {
			t.Errorf("after %d: %d are cached, want %d; %v", before, len(e.Checks.cache), kept, err)
		}
	}
}

const bomb = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, " +
	"[1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a + b + c + d + e + f > 0))))))"

func TestWrongChecksAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spec kustomize.CustomHealthCheck
		want string
	}{
		"a syntax error": {kustomize.CustomHealthCheck{APIVersion: "a.io/v1", Kind: "B", HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: "status.x =="}}, "healthCheckExprs[0].current: 1:12: Syntax error"},
		"no kind":        {kustomize.CustomHealthCheck{APIVersion: "a.io/v1", HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: "true"}}, "healthCheckExprs[0].kind: is required"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewChecks([]kustomize.CustomHealthCheck{c.spec}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
