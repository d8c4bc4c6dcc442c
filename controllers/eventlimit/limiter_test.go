package eventlimit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// api is an API server with a number of Events in the namespace of each project: "kubeop-<tenant>-<project>", or "<project>" of the platform.
type api struct {
	client.Client
	has      map[string]int64
	refused  map[string]bool
	requests []string
	fails    string
}

func (a *api) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	opts := (&client.ListOptions{}).ApplyOptions(options)
	kind := into.GetObjectKind().GroupVersionKind().Kind
	if projects, ok := into.(*v1alpha1.ProjectList); ok {
		for namespace := range a.has {
			name := strings.Split(namespace, "-")
			p := v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: name[len(name)-1], Labels: map[string]string{v1alpha1.TenantLabel: v1alpha1.PlatformTenant}}}
			if len(name) == 3 {
				p.Labels[v1alpha1.TenantLabel] = name[1]
			}
			projects.Items = append(projects.Items, p)
		}
		return nil
	}
	request := kind + " " + opts.Namespace
	a.requests = append(a.requests, request)
	if request == a.fails {
		return errors.New("offline")
	}
	list := into.(*metav1.PartialObjectMetadataList)
	if kind == "NamespaceList" {
		if got := opts.LabelSelector.String(); got != "paas.kubeop.io/events=refused" {
			return fmt.Errorf("the selector is %s", got)
		}
		for name := range a.refused {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return nil
	}
	var number int64
	for name, n := range a.has {
		if opts.Namespace == "" || opts.Namespace == name {
			number += n
		}
	}
	if opts.Limit != 1 {
		return fmt.Errorf("the limit is %d, so all Events are read", opts.Limit)
	}
	if number > 0 {
		list.Items = make([]metav1.PartialObjectMetadata, 1)
	}
	if number > 1 {
		rest := number - 1
		list.RemainingItemCount = &rest
	}
	return nil
}

func (a *api) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	var labels struct {
		Metadata struct{ Labels map[string]*string }
	}
	if err := json.Unmarshal(data, &labels); err != nil {
		return err
	}
	value := labels.Metadata.Labels[v1alpha1.EventsLabel]
	request := fmt.Sprintf("label %s %t", o.GetName(), value != nil)
	a.requests = append(a.requests, request)
	if request == a.fails {
		return errors.New("offline")
	}
	delete(a.refused, o.GetName())
	if value != nil {
		a.refused[o.GetName()] = *value == v1alpha1.EventsRefused
	}
	return nil
}

func TestANamespaceWithTooManyEventsIsRefusedMore(t *testing.T) {
	a := &api{has: map[string]int64{"kubeop-acme-p0": 50, "kubeop-acme-p1": 50}, refused: map[string]bool{}}
	recorder := events.NewFakeRecorder(10)
	l := &Limiter{Direct: a, Projects: a, Events: recorder, Log: testr.New(t), Most: 100}
	check := func(when string, want ...string) {
		t.Helper()
		a.requests = nil
		if err := l.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		var got []string
		for _, r := range a.requests {
			if r != "NamespaceList " && r != "EventList " {
				got = append(got, r)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	check("while there are few, no project is counted")
	a.has["kubeop-acme-p0"], a.has["kubeop-acme-p1"] = 50, 51
	check("when the tenant has more than allowed, its projects are counted", "EventList kubeop-acme-p0", "EventList kubeop-acme-p1", "label kubeop-acme-p1 true")
	const want = "Warning EventsRefused the tenant's projects have 101 Events, of which 100 are allowed, and this one has 51, so its apps cannot create more until half " +
		"of these are gone; Kubernetes deletes them after an hour. Find the app that writes them: kubectl get events -n kubeop-acme-p1"
	if got := <-recorder.Events; got != want {
		t.Errorf("the event is %q, want %q", got, want)
	}
	a.has["kubeop-acme-p0"], a.has["kubeop-acme-p1"] = 25, 26
	check("with more than half", "EventList kubeop-acme-p0", "EventList kubeop-acme-p1")
	a.has["kubeop-acme-p1"] = 25
	check("with half of them", "EventList kubeop-acme-p0", "EventList kubeop-acme-p1", "label kubeop-acme-p1 false")
	check("after that, no project is counted")
	a.has["kubeop-acme-p0"] = 125
	check("when the number grew by as many as are allowed, that is not yet counted")
	a.has["kubeop-acme-p0"] = 126
	check("when it grew by more", "EventList kubeop-acme-p0", "EventList kubeop-acme-p1", "label kubeop-acme-p0 true")
	a.has["kubeop-acme-p0"], a.has["kubeop-acme-p1"] = 25, 90
	check("when another project has them", "EventList kubeop-acme-p0", "EventList kubeop-acme-p1", "label kubeop-acme-p0 false", "label kubeop-acme-p1 true")
	if n := len(recorder.Events); n != 2 {
		t.Errorf("%d more events, want one for each time that a namespace was labelled", n)
	}
}

// TestManyProjectsAreCountedForManyEvents: with many projects, the number of Events has to grow by four for each.
func TestManyProjectsAreCountedForManyEvents(t *testing.T) {
	a := &api{has: map[string]int64{}, refused: map[string]bool{}}
	for i := range 50 {
		a.has[fmt.Sprintf("kubeop-t%d-p", i)] = 4
	}
	l := &Limiter{Direct: a, Projects: a, Events: events.NewFakeRecorder(10), Log: testr.New(t), Most: 100}
	for extra, want := range []int{2, 2 + 50, 2} {
		a.has["kubeop-t0-p"], a.requests = int64(4+min(extra, 1)), nil
		if err := l.Check(t.Context()); err != nil || len(a.requests) != want {
			t.Errorf("check %d: %d requests and %v, want %d", extra, len(a.requests), err, want)
		}
	}
}

// TestAFailedCountIsRepeated: the next check counts every project again, and other projects are counted all the same.
func TestAFailedCountIsRepeated(t *testing.T) {
	a := &api{has: map[string]int64{"kubeop-acme-p0": 101, "kubeop-other-p1": 101}, refused: map[string]bool{}}
	l := &Limiter{Direct: a, Projects: a, Events: events.NewFakeRecorder(10), Log: testr.New(t), Most: 100}
	for _, fails := range []string{"NamespaceList ", "EventList ", "EventList kubeop-acme-p0", "label kubeop-acme-p0 true"} {
		a.fails = fails
		if err := l.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "offline") {
			t.Errorf("when %q fails, the error is %v", fails, err)
		}
	}
	if diff := cmp.Diff(map[string]bool{"kubeop-other-p1": true}, a.refused); diff != "" {
		t.Errorf("while one project cannot be counted (-want +got):\n%s", diff)
	}
	a.fails = ""
	if err := l.Check(t.Context()); err != nil || !a.refused["kubeop-acme-p0"] {
		t.Errorf("the next check gives %v and %v", a.refused, err)
	}
}

// TestOnlyFailedChecksAreLogged, and each one is followed by another after a while.
func TestOnlyFailedChecksAreLogged(t *testing.T) {
	a := &api{has: map[string]int64{"kubeop-acme-p0": 1}, refused: map[string]bool{}, fails: "NamespaceList "}
	c := clocktesting.NewFakeClock(time.Unix(0, 0))
	logged := make(chan string, 10)
	l := &Limiter{Direct: a, Projects: a, Events: events.NewFakeRecorder(10), Clock: c, Most: 100, Log: funcr.New(func(_, args string) { logged <- args }, funcr.Options{})}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.Start(ctx) }()
	if text := <-logged; !strings.Contains(text, "offline") {
		t.Errorf("logged %s", text)
	}
	wait := func() {
		for !c.HasWaiters() {
			time.Sleep(time.Millisecond)
		}
	}
	wait()
	a.fails = ""
	c.Step(every)
	wait()
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(logged) > 0 {
		t.Errorf("a check that succeeded is logged: %s", <-logged)
	}
}

// TestProjectsOfThePlatformAreLeftAlone: their namespaces may have existed before, and the policy does not apply there.
func TestProjectsOfThePlatformAreLeftAlone(t *testing.T) {
	a := &api{has: map[string]int64{"monitoring": 1000, "kubeop-acme-p0": 1}, refused: map[string]bool{}}
	l := &Limiter{Direct: a, Projects: a, Events: events.NewFakeRecorder(10), Log: testr.New(t), Most: 100}
	if err := l.Check(t.Context()); err != nil || len(a.refused) > 0 {
		t.Errorf("got %v and %v, want no namespace labelled", a.refused, err)
	}
	if diff := cmp.Diff([]string{"NamespaceList ", "EventList ", "EventList kubeop-acme-p0"}, a.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestTheLimitsOfEventsAreExact: of the two projects of a tenant that may have 100 Events, each has a part of 50. What is refused is allowed again
// at half of a limit.
func TestTheLimitsOfEventsAreExact(t *testing.T) {
	const one, other = "kubeop-acme-p0", "kubeop-acme-p1"
	for name, tc := range map[string]struct {
		one, other    int64
		refused, want bool
		fails         string
	}{
		"as many as allowed":          {one: 60, other: 40},
		"one more":                    {one: 61, other: 40, want: true},
		"the other has more":          {one: 50, other: 51},
		"half of what is allowed":     {one: 30, other: 20, refused: true},
		"one more than half":          {one: 30, other: 21, refused: true, want: true},
		"half of its part":            {one: 25, other: 90, refused: true},
		"one more than half of it":    {one: 26, other: 90, refused: true, want: true},
		"the label cannot be removed": {one: 1, other: 1, refused: true, want: true, fails: "label " + one + " false"},
		"the label cannot be set":     {one: 90, other: 20, fails: "label " + one + " true"},
	} {
		a := &api{has: map[string]int64{one: tc.one, other: tc.other}, refused: map[string]bool{}, fails: tc.fails}
		if tc.refused {
			a.refused[one] = true
		}
		l := &Limiter{Direct: a, Projects: a, Events: events.NewFakeRecorder(10), Log: testr.New(t), Most: 100}
		projects := &v1alpha1.ProjectList{}
		if err := a.List(t.Context(), projects); err != nil {
			t.Fatal(err)
		}
		err := l.limit(t.Context(), tenantsOf(projects.Items)["acme"], map[string]bool{one: tc.refused})
		if a.refused[one] != tc.want || (err != nil) != (tc.fails != "") {
			t.Errorf("%s: refused is %t, want %t; %v", name, a.refused[one], tc.want, err)
		}
	}
}
