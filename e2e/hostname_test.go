//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// host writes an app that serves a host name, or none.
func (n *team) host(name string) {
	n.t.Helper()
	file := fmt.Sprintf(imageFile, "web", image("v1"), n.name)
	if name != "" {
		file += "  host: " + name + "\n"
	}
	n.write("projects/shop/apps/web/app.yaml", file)
}

// serves reports whether the app of a team is ready with an Ingress for a host name, and what it says.
func (n *team) serves(ctx context.Context, name string) (bool, string, error) {
	app, ingresses := &v1alpha1.App{}, &networkingv1.IngressList{}
	if err := errors.Join(client.IgnoreNotFound(platform.Client.Get(ctx, client.ObjectKey{Namespace: n.namespace(), Name: "web"}, app)),
		platform.Client.List(ctx, ingresses, client.InNamespace(n.namespace()))); err != nil {
		return false, "", err
	}
	said := fmt.Sprint(app.Status)
	for _, i := range ingresses.Items {
		if len(i.Spec.Rules) == 1 && i.Spec.Rules[0].Host == name {
			return true, said, nil
		}
	}
	return false, said, nil
}

// TestTwoTenantsRaceForAHostName: of two tenants that push a name at the same time one gets it. The other gets a message without the tenant's name, and gets the host name
// as soon as it is given up.
func TestTwoTenantsRaceForAHostName(t *testing.T) {
	const name = "www.race.example"
	teams := []*team{newTeam(t, "hare"), newTeam(t, "tortoise")}
	var both sync.WaitGroup
	failed := make([]error, len(teams))
	for i, n := range teams {
		n.host(name)
		both.Go(func() { failed[i] = n.Push(t.Context(), "Take the name") })
	}
	both.Wait()
	must(t, errors.Join(failed...))
	var winner, loser *team
	until(t, "one serves it and the other reports it", func(ctx context.Context) error {
		winner, loser = nil, nil
		for i, n := range teams {
			has, said, err := n.serves(ctx, name)
			switch {
			case err != nil:
				return err
			case has && winner != nil:
				t.Fatal("both have the name")
			case has:
				winner = n
			case strings.Contains(said, "which another tenant has"):
				if loser = n; strings.Contains(said, teams[1-i].name) {
					t.Errorf("the app of %s reveals which tenant has the name: %s", n.name, said)
				}
			}
		}
		if winner == nil || loser == nil {
			return errors.New("not yet")
		}
		return nil
	})
	winner.appReady("web")
	winner.answers("web", winner.name)

	winner.host("")
	winner.push("Give it up")
	until(t, "the other serves it", func(ctx context.Context) error {
		has, said, err := loser.serves(ctx, name)
		if err == nil && !has {
			err = errors.New(said)
		}
		return err
	})
	loser.appReady("web")
	winner.appReady("web")
	if has, _, err := winner.serves(t.Context(), name); has || err != nil {
		t.Errorf("both have the name: %v", err)
	}
}
