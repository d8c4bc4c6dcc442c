package prune

import (
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestATokenIsForOneList: another list needs another confirmation.
func TestATokenIsForOneList(t *testing.T) {
	a, b := v1alpha1.InventoryEntry{ID: "ns_a__PersistentVolumeClaim"}, v1alpha1.InventoryEntry{ID: "ns_b__PersistentVolumeClaim"}
	shown := token("1.2.3", []v1alpha1.InventoryEntry{a, b}, false)
	if again := token("1.2.3", []v1alpha1.InventoryEntry{b, a}, false); again != shown || shown == "" {
		t.Errorf("the same list has the tokens %q and %q", shown, again)
	}
	for name, none := range map[string]string{"nothing": token("1.2.3", nil, false), "a revision that is not known": token("", []v1alpha1.InventoryEntry{a, b}, false)} {
		if none != "" {
			t.Errorf("%s has the token %q, and nobody can confirm it", name, none)
		}
	}
	for name, other := range map[string]string{
		"another revision":        token("1.2.4", []v1alpha1.InventoryEntry{a, b}, false),
		"other objects, as many":  token("1.2.3", []v1alpha1.InventoryEntry{a, {ID: "ns_c__PersistentVolumeClaim"}}, false),
		"a shorter list":          token("1.2.3", []v1alpha1.InventoryEntry{a}, false),
		"claims are deleted, too": token("1.2.3", []v1alpha1.InventoryEntry{a, b}, true),
	} {
		if other == shown {
			t.Errorf("%s has the same token", name)
		}
	}
}

func TestAHeldObjectSaysWhyItIsHeld(t *testing.T) {
	const retained = ", and claimDeletionPolicy is Retain: nothing deletes it before that is Delete"
	owner := v1alpha1.InventoryEntry{ID: "ns_db_apps_StatefulSet", Policy: v1alpha1.PolicyClaims}
	annotated := v1alpha1.InventoryEntry{ID: "ns_a__ConfigMap", Policy: v1alpha1.PolicyConfirm}
	cases := map[string]struct {
		entry    v1alpha1.InventoryEntry
		retain   bool
		want     string
		retained bool
	}{
		"a claim":                        {v1alpha1.InventoryEntry{ID: "ns_a__PersistentVolumeClaim"}, false, "PersistentVolumeClaim a: holds data", false},
		"a claim that is retained":       {v1alpha1.InventoryEntry{ID: "ns_a__PersistentVolumeClaim"}, true, "PersistentVolumeClaim a: holds data" + retained, true},
		"an owner of claims":             {owner, false, "StatefulSet db: owns claims that hold data and would go with it", false},
		"an owner of claims that stay":   {owner, true, "StatefulSet db: owns claims that hold data and would go with it" + retained, true},
		"a namespace":                    {v1alpha1.InventoryEntry{ID: "_a__Namespace"}, true, "Namespace a: its deletion deletes everything in it", false},
		"a definition":                   {v1alpha1.InventoryEntry{ID: "_a_apiextensions.k8s.io_CustomResourceDefinition"}, false, "CustomResourceDefinition a: its deletion deletes all objects of its kind", false},
		"an annotated object":            {annotated, true, "ConfigMap a: is annotated paas.kubeop.io/prune: confirm", false},
		"an entry that cannot be parsed": {v1alpha1.InventoryEntry{ID: "broken"}, true, "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if why, retained := whyHeld(c.entry, c.retain); why != c.want || retained != c.retained {
				t.Errorf("got %q, retained: %t", why, retained)
			}
		})
	}
}

func TestHeldObjectsAreReadFromTheStatusAfterARestart(t *testing.T) {
	p, app := &Pruner{}, webApp()
	app.Status.Held, app.Status.HeldToken = []string{"ConfigMap a: why"}, "0123"
	if got := p.Held(app); got.Token != "0123" || len(got.Objects) != 1 {
		t.Errorf("after a restart the held objects are %v", got)
	}
	p.hold(app, "one", []v1alpha1.InventoryEntry{entry("ConfigMap", "b"), entry("ConfigMap", "c")}, false)
	if got := p.Held(app); got.Token == "0123" || len(got.Objects) != 2 {
		t.Errorf("after a reconcile the held objects are %v", got)
	}
	p.HoldNothing(app)
	if got := p.Held(app); got.Token != "" || len(got.Objects) != 0 {
		t.Errorf("nothing is held any more, and the held objects are %v", got)
	}
	p.Forget(app)
	if got := p.Held(app); got.Token != "0123" {
		t.Errorf("after the app was forgotten the held objects are %v", got)
	}
}

func TestTheStatusNamesSomeHeldObjects(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 20: 20, 21: 20} {
		status := &v1alpha1.AppStatus{Held: []string{"before"}, HeldToken: "before"}
		Held{Objects: make([]string, n), Token: "now"}.Record(status)
		if len(status.Held) != want || status.HeldToken != "now" {
			t.Errorf("of %d held objects the status names %d, with token %s", n, len(status.Held), status.HeldToken)
		}
	}
}

func TestTheSummaryExplainsTheConfirmation(t *testing.T) {
	const confirm = "; 2 more left the source and wait, as status.held says. To delete them, an owner of the tenant with the role admin, or an administrator of the cluster, may run: kubectl annotate app web -n kubeop-acme-shop --overwrite paas.kubeop.io/confirm-deletions=0123"
	for name, c := range map[string]struct {
		held Held
		want string
	}{
		"nothing":               {Held{}, ""},
		"all of it waits":       {Held{Objects: make([]string, 2), Token: "0123"}, confirm},
		"some of it is to stay": {Held{Objects: make([]string, 2), Retained: 1, Token: "0123"}, confirm},
		"all of it is to stay":  {Held{Objects: make([]string, 2), Retained: 2, Token: "0123"}, "; 2 more left the source and stay, as status.held says"},
	} {
		if got := c.held.Summary(webApp(), "the source"); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
