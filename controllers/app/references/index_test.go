package references

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestTheIndexKnowsTheUsersOfAnObject(t *testing.T) {
	web, api := types.NamespacedName{Namespace: "a", Name: "web"}, types.NamespacedName{Namespace: "a", Name: "api"}
	shared, own := Object{"a", "ConfigMap", "shared"}, Object{"a", "Secret", "own"}
	var x Index
	x.Set(web, []Object{shared, own})
	x.Set(api, []Object{shared})
	if got := x.Users(shared); !slices.Equal(got, []types.NamespacedName{api, web}) {
		t.Errorf("the shared object is used by %v", got)
	}
	if unused := x.Set(web, []Object{own}); len(unused) != 0 {
		t.Errorf("the unused objects are %v", unused)
	}
	if got := x.Users(shared); !slices.Equal(got, []types.NamespacedName{api}) {
		t.Errorf("after web dropped it, the object is used by %v", got)
	}
	if got := x.Users(Object{"b", "ConfigMap", "shared"}); len(got) != 0 {
		t.Errorf("an object of another namespace is used by %v", got)
	}
	if unused := x.Set(web, nil); !slices.Equal(unused, []Object{own}) {
		t.Errorf("the unused objects are %v", unused)
	}
	x.Set(api, nil)
	if len(x.users)+len(x.objects) != 0 {
		t.Errorf("the index is not empty: %v, %v", x.users, x.objects)
	}
}
