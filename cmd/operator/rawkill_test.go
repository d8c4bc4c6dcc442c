package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	// The operator is killed rawKills times, or up to mostRawKills times until each phase of the work was interrupted by enough kills.
	// After every restsEvery kills it may finish its work.
	rawKills, mostRawKills, enough, restsEvery = 40, 120, 3, 10
	// rawApps is the number of apps. Of each app, every commit changes lasting objects, adds passing objects, and removes those that the
	// commit before added.
	rawApps, lasting, passing = 4, 12, 12
)

// TestAnOperatorKilledWhileItAppliesOrPrunesLosesNoObject kills the operator while it applies and prunes Raw apps, and pushes another
// commit before each restart. Whenever it finishes its work, the cluster and the inventories contain exactly the objects of the last
// commit.
func TestAnOperatorKilledWhileItAppliesOrPrunesLosesNoObject(t *testing.T) {
	k := newKilled(t, "rawkilled")
	k.repo.Push(map[string]string{"kubeop.yaml": "layout: v1\n", "projects/shop/project.yaml": projectFile})
	operator := k.start()
	found := map[string]int{}
	k.pushRaw(0)
	k.convergesRaw(0)
	few := func() bool { return found["applying"] < enough || found["pruning"] < enough }
	for round := 1; round <= rawKills || round%restsEvery != 1 || few() && round <= mostRawKills; round++ {
		k.pushRaw(round)
		k.awaitKillTimeRaw(round, []string{"", "applying", "applying", "pruning"}[round%4])
		k.kill(operator)
		found[k.phaseRaw(round)]++
		operator = k.start()
		if round%restsEvery == 0 {
			k.convergesRaw(round)
		}
		if t.Failed() {
			break
		}
	}
	defer k.kill(operator)
	t.Logf("kills by interrupted phase: %v", found)
	if few() {
		t.Errorf("too few kills interrupted the work: %v", found)
	}
}

// pushRaw pushes all apps with the round in each object. The passing objects also have it in their names.
func (k *killed) pushRaw(round int) {
	k.t.Helper()
	files := map[string]string{}
	for a := range rawApps {
		name := fmt.Sprintf("raw%d", a)
		var manifests strings.Builder
		for i := range lasting {
			fmt.Fprintf(&manifests, one, name, i, round)
		}
		for i := range passing {
			fmt.Fprintf(&manifests, one, fmt.Sprintf("%s-of-%d", name, round), i, round)
		}
		files["projects/shop/apps/"+name+"/app.yaml"] = fmt.Sprintf(app, name, "{type: Raw, raw: {path: manifests}}")
		files["projects/shop/apps/"+name+"/manifests/all.yaml"] = manifests.String()
	}
	k.commit = k.repo.Push(files)
}

// awaitKillTimeRaw waits for a random time after the push, or after the delivery of the commit has reached a phase.
func (k *killed) awaitKillTimeRaw(round int, phase string) {
	if phase == "" {
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
		return
	}
	k.eventually("the commit is being delivered", func() error {
		if now := k.phaseRaw(round); now != phase && now != "pruning" && now != "done" {
			return fmt.Errorf("round %d is %s", round, now)
		}
		return nil
	})
	if phase == "applying" {
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
	}
}

// phaseRaw returns the phase of the delivery of a round's commit: that of the app that has come farthest.
func (k *killed) phaseRaw(round int) string {
	k.t.Helper()
	list := &corev1.ConfigMapList{}
	if err := k.List(k.t.Context(), list, client.InNamespace(k.namespace), client.HasLabels{v1alpha1.AppLabel}); err != nil {
		k.t.Fatal(err)
	}
	now, before := map[string]int{}, map[string]int{}
	for _, c := range list.Items {
		if c.Data["round"] == fmt.Sprint(round) {
			now[c.Labels[v1alpha1.AppLabel]]++
		} else {
			before[c.Labels[v1alpha1.AppLabel]]++
		}
	}
	phase := "done"
	for a := range rawApps {
		switch name := fmt.Sprintf("raw%d", a); {
		case now[name] == lasting+passing && before[name] > 0:
			return "pruning"
		case now[name] > 0 && before[name] > 0:
			phase = "applying"
		case before[name] > 0 && len(now) == 0:
			phase = "waiting"
		}
	}
	return phase
}

// convergesRaw waits until the objects and the inventory of every app are those of the last commit.
func (k *killed) convergesRaw(round int) {
	k.t.Helper()
	for a := range rawApps {
		name := fmt.Sprintf("raw%d", a)
		k.eventually("the app "+name+" is as the commit says", func() error { return k.holds(name, round, lasting+passing) })
		k.eventually("the app "+name+" is ready at the commit", func() error {
			a := &v1alpha1.App{}
			if err := k.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: name}, a); err != nil {
				return err
			}
			if recorded := len(a.Status.Inventory.Entries); !conditions.IsReady(a) || a.Status.LastAppliedRevision != k.commit || recorded != lasting+passing {
				return fmt.Errorf("it is at %s, not %s, and records %d objects; conditions are %+v", a.Status.LastAppliedRevision, k.commit, recorded, a.Status.Conditions)
			}
			return nil
		})
	}
}
