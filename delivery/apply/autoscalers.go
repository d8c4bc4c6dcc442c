package apply

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scalee identifies the object that an autoscaler scales, in whatever version.
type scalee struct{ namespace, group, kind, name string }

// scalers knows which objects HorizontalPodAutoscalers scale.
type scalers struct {
	own map[scalee]bool
	// others are the autoscalers that exist outside of the set, listed once per run and namespace.
	others *others
}

type others struct {
	sync.Mutex
	seen map[string]map[scalee]bool
}

func scalersOf(objects []*unstructured.Unstructured) scalers {
	s := scalers{own: map[scalee]bool{}, others: &others{seen: map[string]map[scalee]bool{}}}
	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() == (schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}) {
			s.own[scaleeOf(o)] = true
		}
	}
	return s
}

func scaleeOf(autoscaler *unstructured.Unstructured) scalee {
	text := func(field string) string {
		value, _, _ := unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", field)
		return value
	}
	group, _ := schema.ParseGroupVersion(text("apiVersion")) // Without a valid API version, the autoscaler scales nothing.
	return scalee{autoscaler.GetNamespace(), group.Group, text("kind"), text("name")}
}

func asScalee(o *unstructured.Unstructured) scalee {
	return scalee{o.GetNamespace(), o.GroupVersionKind().Group, o.GetKind(), o.GetName()}
}

// scale reports whether an autoscaler of the set scales the object.
func (s scalers) scale(o *unstructured.Unstructured) bool { return s.own[asScalee(o)] }

// live reports whether any autoscaler in the object's namespace scales it.
func (s scalers) live(ctx context.Context, c client.Client, o *unstructured.Unstructured) (bool, error) {
	s.others.Lock()
	defer s.others.Unlock()
	seen, ok := s.others.seen[o.GetNamespace()]
	if !ok {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("autoscaling/v2")
		list.SetKind("HorizontalPodAutoscalerList")
		if err := c.List(ctx, list, client.InNamespace(o.GetNamespace())); err != nil && !meta.IsNoMatchError(err) {
			return false, fmt.Errorf("looking for what scales it: %w", err)
		}
		seen = map[scalee]bool{}
		for i := range list.Items {
			seen[scaleeOf(&list.Items[i])] = true
		}
		s.others.seen[o.GetNamespace()] = seen
	}
	return seen[asScalee(o)], nil
}
