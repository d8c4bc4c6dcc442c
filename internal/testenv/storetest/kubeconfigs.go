package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/store"
)

func kubeconfigOf(tenant, id string) store.Kubeconfig {
	return store.Kubeconfig{ID: id, Name: "laptop", Tenant: tenant, TenantUID: "uid of " + tenant, Project: "shop", Role: "edit", Life: time.Hour, Created: now, CreatedBy: "user:ann", Groups: []string{"dev ops", "a,\nb"}, Expires: now.Add(time.Hour)}
}

func beginKubeconfig(t *testing.T, s store.Store, tenant, id string) store.Kubeconfig {
	t.Helper()
	k := kubeconfigOf(tenant, id)
	if err := s.BeginKubeconfig(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	return k
}

func kubeconfigs(t *testing.T, s store.Store) {
	want := beginKubeconfig(t, s, "acme", "a")
	beginKubeconfig(t, s, "beta", "b")
	if got := objects(t, s, ""); len(got) != 0 {
		t.Errorf("before there is a token, there are events about %q", got)
	}
	grant := func(expires time.Time) {
		t.Helper()
		granted := want
		granted.SecretUID, granted.Expires, granted.Groups = "uid", expires, []string{"next"}
		if err := s.GrantToken(t.Context(), granted, eventOf("acme", "kubeconfig/a")); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(expires time.Time) {
		t.Helper()
		want := want
		want.SecretUID, want.Expires, want.Groups = "uid", expires, []string{"next"}
		if got, err := s.GetKubeconfig(t.Context(), "acme", "shop", "a"); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%v: -stored +found:\n%s", err, cmp.Diff(want, got))
		}
	}
	grant(now.Add(30 * time.Minute)) // The first token ends earlier than was asked for.
	wants(now.Add(30 * time.Minute))
	grant(now.Add(50 * time.Minute))
	grant(now.Add(40 * time.Minute))
	wants(now.Add(50 * time.Minute)) // The later one of two is still valid.
	if got := objects(t, s, "acme"); len(got) != 3 {
		t.Errorf("there are events about %q", got)
	}
	for _, other := range [][3]string{{"beta", "shop", "a"}, {"acme", "blog", "a"}, {"acme", "shop", "b"}} {
		if _, err := s.GetKubeconfig(t.Context(), other[0], other[1], other[2]); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%v: %v", other, err)
		}
	}
	if err := s.GrantToken(t.Context(), kubeconfigOf("acme", "gone"), eventOf("acme", "x")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of one that is not there: %v", err)
	}
	if err := s.DeleteKubeconfig(t.Context(), "a", eventOf("acme", "kubeconfig/a")); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteKubeconfig(t.Context(), "a", eventOf("acme", "x")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
	if err := s.DeleteKubeconfig(t.Context(), "b", store.Event{}); err != nil {
		t.Fatal(err)
	}
	if got := objects(t, s, ""); len(got) != 4 {
		t.Errorf("there are events about %q", got)
	}
}

func kubeconfigLists(t *testing.T, s store.Store) {
	for i, k := range []store.Kubeconfig{kubeconfigOf("acme", "a"), kubeconfigOf("acme", "b"), kubeconfigOf("acme", "c"), kubeconfigOf("beta", "d")} {
		if i == 1 {
			k.CreatedBy = "user:bob"
		}
		if i == 3 {
			k.Tenant = "acme" // Another one of the name.
		}
		if i == 2 {
			k.Project, k.Expires = "blog", now
		}
		if err := s.BeginKubeconfig(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	create(t, s, "acme", "revoked")
	if err := s.RevokeToken(t.Context(), "acme", "revoked", eventOf("acme", "revoked")); err != nil {
		t.Fatal(err)
	}
	of := kubeconfigOf("gamma", "e")
	of.CreatedBy, of.Expires = "revoked", now.Add(3*time.Hour)
	if err := s.BeginKubeconfig(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		of   store.KubeconfigFilter
		want []string
	}{
		"all":           {store.KubeconfigFilter{}, []string{"a", "b", "c", "d", "e"}},
		"after one":     {store.KubeconfigFilter{After: "b"}, []string{"c", "d", "e"}},
		"of a name":     {store.KubeconfigFilter{Tenant: "acme"}, []string{"a", "b", "c", "d"}},
		"of a tenant":   {store.KubeconfigFilter{Tenant: "acme", TenantUID: "uid of acme"}, []string{"a", "b", "c"}},
		"of a project":  {store.KubeconfigFilter{Tenant: "acme", TenantUID: "uid of acme", Project: "shop"}, []string{"a", "b"}},
		"of somebody":   {store.KubeconfigFilter{Tenant: "acme", Project: "shop", CreatedBy: "user:bob"}, []string{"b"}},
		"that ended":    {store.KubeconfigFilter{EndedBy: now}, []string{"c", "e"}},
		"that end soon": {store.KubeconfigFilter{EndedBy: now.Add(time.Hour)}, []string{"a", "b", "c", "d", "e"}},
		"of nobody":     {store.KubeconfigFilter{Tenant: "gone"}, nil},
	} {
		var got []string
		all, err := s.ListKubeconfigs(t.Context(), c.of, 10)
		for _, k := range all {
			got = append(got, k.ID)
		}
		if err != nil || !slices.Equal(c.want, got) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	if some, err := s.ListKubeconfigs(t.Context(), store.KubeconfigFilter{}, 2); err != nil || len(some) != 2 {
		t.Errorf("%v: %v", err, some)
	}
}

// tooManyKubeconfigs also has those that ended: each has a Secret until it is swept.
func tooManyKubeconfigs(t *testing.T, s store.Store) {
	begin := func(k store.Kubeconfig, caller, project int, refused bool) {
		t.Helper()
		k.CreatedBy, k.Project = fmt.Sprint("caller ", caller), fmt.Sprint("project ", project)
		if err := s.BeginKubeconfig(t.Context(), k); errors.Is(err, store.ErrTooManyKubeconfigs) != refused || !refused && err != nil {
			t.Fatalf("%+v: %v", k, err)
		}
	}
	const caller, project = store.MaxKubeconfigsOfCaller, store.MaxKubeconfigsOfProject
	for i := range store.MaxKubeconfigs - 1 {
		begin(kubeconfigOf("acme", fmt.Sprint(i)), i/caller, i/project, false)
	}
	more := kubeconfigOf("acme", "more")
	more.Created = now.Add(24 * time.Hour)
	begin(more, 0, 90, true)
	begin(more, 90, 0, true)
	begin(more, 90, 90, false)
	begin(kubeconfigOf("acme", "last"), 91, 91, true)
	next := kubeconfigOf("acme", "next")
	next.TenantUID = "uid of the next tenant of the name"
	begin(next, 0, 0, false)
	begin(kubeconfigOf("beta", "other"), 0, 0, false)
	if err := s.DeleteKubeconfig(t.Context(), "0", store.Event{}); err != nil {
		t.Fatal(err)
	}
	begin(kubeconfigOf("acme", "last"), 0, 0, false)
}
