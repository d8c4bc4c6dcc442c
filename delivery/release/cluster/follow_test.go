package cluster

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/release/fault"
)

const (
	jobKind = "apiVersion: batch/v1\nkind: Job\n"
	podKind = "apiVersion: v1\nkind: Pod\n"
)

// event is an event of a watch, in which an object of a kind has a status.
func event(t *testing.T, name, kind, status string) string {
	t.Helper()
	text, err := liveObject(t, kind, "", "status: "+status+"\n").MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return `{"type": "` + name + `", "object": ` + string(text) + `}`
}

// TestAHookIsFollowedUntilItEnds, however often its watch ends: a release goes on after a hook only if that succeeded.
func TestAHookIsFollowedUntilItEnds(t *testing.T) {
	const (
		active    = "{active: 1}"
		completed = "{conditions: [{type: Complete, status: 'True'}]}"
		failed    = "{conditions: [{type: Failed, status: 'True', message: past its deadline}]}"
	)
	expired := `{"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}}`
	down := apierrors.NewServiceUnavailable("it starts")
	tests := map[string]struct {
		kind string
		// watches are the events of one watch after the other. status is that of the live object; "" if it is gone.
		watches [][]string
		status  string
		// failures are of each request of that name, or of the first one only.
		failures, first map[string]*apierrors.StatusError
		late            bool
		why             string
		fails           string
		environment     bool
		requests        string
	}{
		"a Job completes":                         {watches: [][]string{{event(t, "MODIFIED", jobKind, active), event(t, "MODIFIED", jobKind, completed)}}, status: completed, requests: "WATCH"},
		"a Job fails":                             {watches: [][]string{{event(t, "MODIFIED", jobKind, failed)}}, status: failed, fails: "hook Job/a failed: past its deadline", requests: "WATCH"},
		"a Job fails, and a pod says more":        {watches: [][]string{{event(t, "MODIFIED", jobKind, failed)}}, status: failed, why: "failed: past its deadline; a pod ended with 1", fails: "hook Job/a: failed: past its deadline; a pod ended with 1", requests: "WATCH"},
		"a Job is deleted":                        {watches: [][]string{{event(t, "DELETED", jobKind, active)}}, requests: "WATCH"},
		"the watch ends, and it has completed":    {watches: [][]string{{event(t, "MODIFIED", jobKind, active)}}, status: completed, requests: "WATCH,GET"},
		"the watch ends, and it has failed":       {watches: [][]string{{}}, status: failed, fails: "hook Job/a failed: past its deadline", requests: "WATCH,GET"},
		"the watch ends, and it is gone":          {watches: [][]string{{}}, requests: "WATCH,GET"},
		"the watch ends, and a second one begins": {watches: [][]string{{}, {event(t, "MODIFIED", jobKind, completed)}}, status: active, requests: "WATCH,GET,WATCH"},
		"the watch has expired":                   {watches: [][]string{{expired, event(t, "MODIFIED", jobKind, failed)}, {event(t, "MODIFIED", jobKind, completed)}}, status: active, requests: "WATCH,GET,WATCH"},
		"it cannot be watched, only read":         {failures: map[string]*apierrors.StatusError{"WATCH": errForbidden}, status: completed, requests: "WATCH,GET"},
		"it cannot be read":                       {failures: map[string]*apierrors.StatusError{"WATCH": errForbidden, "GET": errForbidden}, status: active, fails: "hook Job/a: objects \"a\" is forbidden", requests: "WATCH,GET"},
		"the API server is down for a while":      {first: map[string]*apierrors.StatusError{"WATCH": down, "GET": down}, status: completed, requests: "WATCH,GET,WATCH,GET"},
		"it does not end in time":                 {watches: [][]string{{}}, status: active, late: true, fails: "hook Job/a has not ended after 1m0s", requests: "WATCH"},
		"it does not end in time for a reason":    {watches: [][]string{{}}, status: active, late: true, why: "no node has room", fails: "hook Job/a has not ended after 1m0s: no node has room", requests: "WATCH"},
		"it cannot be watched, and does not end":  {failures: map[string]*apierrors.StatusError{"WATCH": errForbidden}, status: active, late: true, why: "no node has room", fails: "hook Job/a has not ended after 1m0s: no node has room; watching it: objects \"a\" is forbidden", requests: "WATCH"},
		"a Pod succeeds":                          {kind: podKind, watches: [][]string{{event(t, "MODIFIED", podKind, "{phase: Running}"), event(t, "MODIFIED", podKind, "{phase: Succeeded}")}}, requests: "WATCH"},
		"a Pod fails":                             {kind: podKind, watches: [][]string{{event(t, "MODIFIED", podKind, "{phase: Failed}")}}, fails: "hook Pod/a failed", requests: "WATCH"},
		"other kinds do not end":                  {kind: configMapKind, status: active},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.kind == "" {
				tc.kind = jobKind
			}
			api := &fakeAPI{watches: tc.watches, fails: tc.failures}
			if tc.first != nil {
				api.fails, api.once = tc.first, map[string]bool{"WATCH": true, "GET": true}
			}
			if tc.status != "" {
				api.live = liveObject(t, tc.kind, "", "status: "+tc.status+"\n")
			}
			c := api.client(t)
			c.clock = &pauses{late: tc.late}
			idle := 0
			c.Terms.Idle = func(f func() error) error { idle++; return f() }
			c.Explain = func(_ context.Context, u *unstructured.Unstructured) string {
				if _, has := u.Object["status"]; has {
					t.Error("the reason is looked for with a status that is not the last any more")
				}
				return tc.why
			}
			err := c.WatchUntilReady(kube.ResourceList{target(t, c, liveObject(t, tc.kind, "", "status: {}\n"))}, time.Minute)
			if tc.fails == "" && err != nil || tc.fails != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.fails)) {
				t.Errorf("got %v, want %q", err, tc.fails)
			}
			if got := strings.Join(api.requests, ","); got != tc.requests {
				t.Errorf("the requests are %s, want %s", got, tc.requests)
			}
			if waits := tc.requests != ""; (idle == 1) != waits {
				t.Errorf("it was idle %d times", idle)
			}
			if noted := c.Faults.All(); (noted != nil) != (err != nil) {
				t.Errorf("the action keeps %v of %v", noted, err)
			}
		})
	}
}

// TestAWaitEndsWhenAllObjectsAreReady, or says which is not ready and why.
func TestAWaitEndsWhenAllObjectsAreReady(t *testing.T) {
	const running, ready, failed = "{phase: Running}", "{phase: Running, conditions: [{type: Ready, status: 'True'}]}", "{phase: Failed}"
	down := apierrors.NewServiceUnavailable("it starts")
	tests := map[string]struct {
		// statuses are those that one read after the other finds; the last is repeated.
		statuses   []string
		first      map[string]*apierrors.StatusError
		fail       map[string]*apierrors.StatusError
		late       bool
		superseded bool
		field      string
		why        string
		fails      string
		requests   string
	}{
		"at once":                              {statuses: []string{ready}, requests: "GET"},
		"later":                                {statuses: []string{running, running, ready}, requests: "GET,GET,GET"},
		"it fails":                             {statuses: []string{running, failed}, fails: "Pod/a: failed", requests: "GET,GET"},
		"not in time":                          {statuses: []string{running}, late: true, fails: "Pod/a is not ready after 1m0s: is not ready yet", requests: "GET"},
		"not in time, which the App sets":      {statuses: []string{running}, late: true, field: "spec.helm.install.timeout", fails: "Pod/a is not ready after 1m0s (spec.helm.install.timeout): is not ready yet", requests: "GET"},
		"not in time for a reason":             {statuses: []string{running}, late: true, why: "its image cannot be pulled", fails: "Pod/a is not ready after 1m0s: its image cannot be pulled", requests: "GET"},
		"it cannot be read":                    {statuses: []string{running}, fail: map[string]*apierrors.StatusError{"GET": errForbidden}, fails: `objects "a" is forbidden`, requests: "GET"},
		"the API server is down":               {statuses: []string{ready}, first: map[string]*apierrors.StatusError{"GET": down}, requests: "GET,GET"},
		"the API server is down all the time":  {statuses: []string{ready}, fail: map[string]*apierrors.StatusError{"GET": down}, late: true, fails: "Pod/a is not ready after 1m0s: it starts", requests: "GET"},
		"a newer input makes it pointless":     {statuses: []string{running}, superseded: true, fails: fault.ErrSuperseded.Error(), requests: "GET"},
		"a newer input, and it is ready":       {statuses: []string{ready}, superseded: true, requests: "GET"},
		"it is not there yet, but then it is":  {statuses: []string{"", ready}, requests: "GET,GET"},
		"it is not there and does not come up": {statuses: []string{""}, late: true, fails: "Pod/a is not ready after 1m0s: ", requests: "GET"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			api := &fakeAPI{fails: tc.fail}
			if tc.first != nil {
				api.fails, api.once = tc.first, map[string]bool{"GET": true}
			}
			api.read = func(n int) {
				api.live = nil
				if status := tc.statuses[min(n, len(tc.statuses))-1]; status != "" {
					api.live = liveObject(t, podKind, "", "status: "+status+"\n")
				}
			}
			c := api.client(t)
			c.clock = &pauses{late: tc.late}
			c.Explain = func(context.Context, *unstructured.Unstructured) string { return tc.why }
			c.Terms.TimeoutField = tc.field
			if tc.superseded {
				c.clock = stopped{}
				ended := make(chan struct{})
				close(ended)
				c.Terms.Superseded = ended
			}
			err := c.Wait(kube.ResourceList{target(t, c, object(t, podKind+nameA))}, time.Minute)
			if tc.fails == "" && err != nil || tc.fails != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.fails)) {
				t.Errorf("got %v, want %q", err, tc.fails)
			}
			if got := strings.Join(api.requests, ","); got != tc.requests {
				t.Errorf("the requests are %s, want %s", got, tc.requests)
			}
			if noted := c.Faults.All(); (noted != nil) != (err != nil) {
				t.Errorf("the action keeps %v of %v", noted, err)
			}
		})
	}
}

// TestOnlyAWaitWithJobsWaitsForTheirEnd: Helm's --wait goes on once a Job has begun.
func TestOnlyAWaitWithJobsWaitsForTheirEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		wait func(*Client) func(kube.ResourceList, time.Duration) error
		want int
	}{
		"Wait":         {func(c *Client) func(kube.ResourceList, time.Duration) error { return c.Wait }, 1},
		"WaitWithJobs": {func(c *Client) func(kube.ResourceList, time.Duration) error { return c.WaitWithJobs }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			statuses := []string{"{startTime: '2026-01-01T00:00:00Z', active: 1}", "{startTime: '2026-01-01T00:00:00Z', conditions: [{type: Complete, status: 'True'}]}"}
			api := &fakeAPI{}
			api.read = func(n int) { api.live = liveObject(t, jobKind, "", "status: "+statuses[min(n, 2)-1]+"\n") }
			c := api.client(t)
			if err := tc.wait(c)(kube.ResourceList{target(t, c, object(t, jobKind+nameA))}, time.Minute); err != nil || len(api.requests) != tc.want {
				t.Errorf("got %v after %d looks, want %d", err, len(api.requests), tc.want)
			}
		})
	}
}

// TestTheTimeoutOfADeletionHasADefault of Helm's five minutes.
func TestTheTimeoutOfADeletionHasADefault(t *testing.T) {
	got := []time.Duration{(&Client{}).waitTimeout(), (&Client{Terms: Terms{Timeout: time.Second}}).waitTimeout()}
	if !slices.Equal(got, []time.Duration{5 * time.Minute, time.Second}) {
		t.Errorf("got %v", got)
	}
}
