package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/fence"
)

// TestAHangingAPIServerEndsNoLeader: for five times the length of the lease, the API server answers neither the leader nor the standby. Then the
// leader continues in the same term.
func TestAHangingAPIServerEndsNoLeader(t *testing.T) {
	d := newOperatorPair(t, "hanging")
	leader := d.startOperator()
	d.push(0, fewer)
	d.converges(0)
	standby := d.startOperator()
	before := d.lease()
	for _, f := range []*proxiedOperator{leader, standby} {
		f.api.Lock()
	}
	d.push(1, fewer)
	time.Sleep(20 * time.Second)
	for _, f := range []*proxiedOperator{leader, standby} {
		f.api.Unlock()
	}
	d.converges(1)
	if after := d.lease(); after != before {
		t.Errorf("the lease is %+v, was %+v", after, before)
	}
	for name, f := range map[string]*proxiedOperator{"leader": leader, "standby": standby} {
		select {
		case err := <-f.ended:
			t.Fatalf("the %s ended with %v: %s", name, err, f.stderr.String())
		default:
		}
	}
	standby.stops()
	leader.stops()
}

// TestAnOperatorStopsWhenItsClusterIsRestored restores Kubernetes' database while the operator runs. Since the backup, Git has changed one app, added one and removed
// one. The operator writes nothing and ends with a clear log line, and the next one brings the cluster to the state in Git. Objects that exist in
// both the backup and Git are not recreated.
func TestAnOperatorStopsWhenItsClusterIsRestored(t *testing.T) {
	d := &operatorPair{killed: newKilled(t, "restored")}
	d.repo.Push(map[string]string{
		"kubeop.yaml": "layout: v1\n", "projects/shop/project.yaml": projectFile,
		"projects/shop/apps/old/app.yaml": fmt.Sprintf(app, "old", "{type: Raw, raw: {path: manifests}}"), "projects/shop/apps/old/manifests/all.yaml": fmt.Sprintf(one, "old", 0, 0),
	})
	operator := d.startOperator()
	d.push(0, fewer)
	d.converges(0)
	d.eventually("the app old is there", func() error { return d.holds("old", 0, 1) })
	was := d.uids()
	snapshot := env.Snapshot(t)
	d.repo.Push(map[string]string{
		"projects/shop/apps/old":          "-",
		"projects/shop/apps/new/app.yaml": fmt.Sprintf(app, "new", "{type: Raw, raw: {path: manifests}}"), "projects/shop/apps/new/manifests/all.yaml": fmt.Sprintf(one, "new", 0, 1),
	})
	d.push(1, fewer)
	d.converges(1)
	d.eventually("the app new is there", func() error { return d.holds("new", 1, 1) })
	d.eventually("the app old is gone", func() error { return d.holds("old", -1, 0) })
	time.Sleep(2 * time.Second) // The lease is renewed.

	var wrote atomic.Int32
	restored := func(r *http.Request) { wrote.Add(1); t.Logf("it sent %s %s", r.Method, r.URL.Path) }
	operator.api.Lock()
	operator.look.Store(&restored)
	env.Restore(t, snapshot)
	d.push(2, fewer)
	time.Sleep(2 * time.Second) // The operator fetches that.
	began := time.Now()
	operator.api.Unlock()
	d.endsRestored(operator)
	t.Logf("it ended %s after the API server answered again", time.Since(began))
	if n := wrote.Load(); n > 0 {
		t.Errorf("it sent %d writes to the restored cluster", n)
	}
	if err := d.holds("old", 0, 1); err != nil {
		t.Fatalf("the cluster is not as the backup has it: %v", err)
	}

	next := d.startOperator()
	d.converges(2)
	d.eventually("the app new is there", func() error { return d.holds("new", 1, 1) })
	d.eventually("the app old is gone", func() error { return d.holds("old", -1, 0) })
	now := d.uids()
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if !strings.Contains(name, "old") && now[name] != was[name] {
			t.Errorf("%s has the UID %q, had %q", name, now[name], was[name])
		}
	}
	next.stops()
}

// endsRestored waits for an operator to end because of a restored cluster.
func (d *operatorPair) endsRestored(f *proxiedOperator) {
	d.t.Helper()
	select {
	case err := <-f.ended:
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != wentBack {
			d.t.Errorf("it ended with %v, want status %d", err, wentBack)
		}
	case <-time.After(time.Minute):
		d.t.Fatalf("it did not end: %s", f.stderr.String())
	}
	var lines []string
	for line := range strings.Lines(f.stderr.String()) {
		if strings.Contains(line, fence.ErrWentBack.Error()) {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "restored from a backup") || !strings.Contains(lines[0], "was at") {
		d.t.Errorf("it logged %q", lines)
	}
	d.t.Logf("%s", strings.Join(lines, ""))
}

// uids returns the UIDs of the project's namespace, its apps and their ConfigMaps, by kind and name.
func (d *operatorPair) uids() map[string]types.UID {
	d.t.Helper()
	out := map[string]types.UID{}
	for kind, list := range map[string]client.ObjectList{"app": &v1alpha1.AppList{}, "map": &corev1.ConfigMapList{}} {
		if err := d.List(d.t.Context(), list, client.InNamespace(d.namespace)); err != nil {
			d.t.Fatal(err)
		}
		switch l := list.(type) {
		case *v1alpha1.AppList:
			for _, o := range l.Items {
				out[kind+" "+o.Name] = o.UID
			}
		case *corev1.ConfigMapList:
			for _, o := range l.Items {
				out[kind+" "+o.Name] = o.UID
			}
		}
	}
	return out
}
