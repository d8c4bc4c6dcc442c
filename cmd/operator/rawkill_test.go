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
	// rawKills is how often the operator is killed, and up to mostRawKills times until enough fell into each phase of the work;
	// restsEvery is after how many of them it may come to rest.
	rawKills, mostRawKills, enough, restsEvery = 40, 120, 3, 10
	// rawApps is how many apps there are; lasting is how many objects of each are changed by every commit, passing how many
	// are added by one and removed by the next.
	rawApps, lasting, passing = 4, 12, 12
)

// TestKillRaw kills the operator while it applies and prunes Raw apps, each time with another commit to deliver when it is
// back. Whenever it may come to rest, the cluster and the inventories hold what the last commit says, and nothing else.
func TestKillRaw(t *testing.T) {
	k := newKilled(t, "rawkilled")
	k.repo.Push(map[string]string{"kubeop.yaml": "layout: v1\n", "projects/shop/project.yaml": projectFile})
	operator := k.start()
	found := map[string]int{}
	k.pushRaw(0)
	k.restRaw(0)
	few := func() bool { return found["applying"] < enough || found["pruning"] < enough }
	for round := 1; round <= rawKills || round%restsEvery != 1 || few() && round <= mostRawKills; round++ {
		k.pushRaw(round)
		k.momentRaw(round, []string{"", "applying", "applying", "pruning"}[round%4])
		k.kill(operator)
		found[k.phaseRaw(round)]++
		operator = k.start()
		if round%restsEvery == 0 {
			k.restRaw(round)
		}
		if t.Failed() {
			break
		}
	}
	defer k.kill(operator)
	t.Logf("kills by what was under way: %v", found)
	if few() {
		t.Errorf("too few kills fell into the work: %v", found)
	}
}

// pushRaw ships all apps with the round in each object. Those that pass carry it in their name, too.
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

// momentRaw lets a random time pass: after the push, or once the delivery of the commit has come to a phase.
func (k *killed) momentRaw(round int, phase string) {
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

// phaseRaw says how far the delivery of a round's commit has come, by the app that is farthest.
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

// restRaw waits until every app is as the last commit says, and its inventory too.
func (k *killed) restRaw(round int) {
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
