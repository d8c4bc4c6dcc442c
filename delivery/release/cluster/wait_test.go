package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestAFailedHookNamesItsMessageOrReason(t *testing.T) {
	condition := func(fields string) string {
		return "status: {conditions: [{type: Failed, status: \"True\"" + fields + "}]}\n"
	}
	tests := map[string]struct{ status, want string }{
		"with a message":      {condition(", reason: Late, message: past its deadline"), "failed: past its deadline"},
		"with a reason":       {condition(", reason: Late"), "failed: Late"},
		"with an empty one":   {condition(", message: \"\""), "failed"},
		"with nothing at all": {condition(""), "failed"},
		"not yet":             {"status: {}\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			done, err := jobDone(object(t, "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate}\n"+test.status))
			if done != (test.want != "") || err != nil != done || err != nil && err.Error() != test.want {
				t.Errorf("got %t, %v", done, err)
			}
		})
	}
}

func TestAHookThatCannotBeFollowedIsNoHookThatFailed(t *testing.T) {
	refused := errors.New("no right to read it")
	tests := map[string]struct {
		err          error
		reason, want string
	}{
		"it failed":                          {&hookFailed{"past its deadline"}, "", "hook Job/migrate failed: past its deadline"},
		"it failed, and the reason is known": {&hookFailed{"past its deadline"}, "failed: past its deadline; pod migrate-1 ends with 1", "hook Job/migrate: failed: past its deadline; pod migrate-1 ends with 1"},
		"it failed, and no more is known":    {&hookFailed{"past its deadline"}, "failed: past its deadline", "hook Job/migrate failed: past its deadline"},
		"its failure is wrapped":             {fmt.Errorf("watching: %w", &hookFailed{"past its deadline"}), "", "hook Job/migrate failed: past its deadline"},
		"it does not end":                    {errTimeUp, "", "hook Job/migrate has not ended after 1m0s"},
		"it does not end for a reason":       {errTimeUp, "no node has room", "hook Job/migrate has not ended after 1m0s: no node has room"},
		"it cannot be read":                  {refused, "", "hook Job/migrate: no right to read it"},
		"it cannot be read, and it waits":    {refused, "no node has room", "hook Job/migrate: no right to read it"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := hookError("Job/migrate", tc.err, "1m0s", tc.reason)
			if err == nil || err.Error() != tc.want || errors.Is(tc.err, refused) != errors.Is(err, refused) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestReadyAsHelmsWaitPromises(t *testing.T) {
	const (
		job     = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate}\n"
		service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
		began   = "status: {startTime: \"2026-01-01T00:00:00Z\", active: 1}\n"
	)
	tests := map[string]struct {
		object       string
		jobs         bool
		ready        bool
		fails, waits string
	}{
		"a ConfigMap is ready":             {object: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n", ready: true},
		"a Job has not begun":              {object: job, waits: "has not completed yet"},
		"a Job has begun":                  {object: job + began, ready: true},
		"a Job has begun, waited for":      {object: job + began, jobs: true, waits: "has not completed yet"},
		"a Job has completed":              {object: job + "status: {conditions: [{type: Complete, status: \"True\"}]}\n", jobs: true, ready: true},
		"a Job has failed":                 {object: job + "status: {startTime: \"2026-01-01T00:00:00Z\", conditions: [{type: Failed, status: \"True\", message: m}]}\n", fails: "failed: m"},
		"a Job has failed, waited for":     {object: job + "status: {conditions: [{type: Failed, status: \"True\"}]}\n", jobs: true, fails: "failed"},
		"a load balancer has no address":   {object: service + "spec: {type: LoadBalancer, clusterIP: 10.0.0.1}\n", waits: "no load balancer has been given to it yet"},
		"a load balancer has an address":   {object: service + "spec: {type: LoadBalancer, clusterIP: 10.0.0.1}\nstatus: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}\n", ready: true},
		"a Pod that runs and is not ready": {object: "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nstatus: {phase: Running}\n", waits: "is not ready yet"},
		"a Pod that starts":                {object: "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nstatus: {phase: Pending, startTime: \"2026-01-01T00:00:00Z\"}\n", waits: "is not ready yet"},
		"a Job that is being deleted":      {object: strings.Replace(job, "migrate", "migrate, deletionTimestamp: \"2026-01-01T00:00:00Z\"", 1) + began, waits: "is being deleted"},
		"a Pod has failed":                 {object: "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nstatus: {phase: Failed}\n", fails: "failed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, waits, err := ready(object(t, tc.object), tc.jobs)
			fails := ""
			if err != nil {
				fails = err.Error()
			}
			if got != tc.ready || fails != tc.fails || !tc.ready && waits != tc.waits {
				t.Errorf("ready %t, waits for %q, fails with %q", got, waits, fails)
			}
		})
	}
}
