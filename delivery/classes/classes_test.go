package classes

import (
	"context"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestTheDefaultClassesAreThoseOfTheAPIServer: of several, its admission plugins take the newest, then the first by name, and the lowest priority.
func TestTheDefaultClassesAreThoseOfTheAPIServer(t *testing.T) {
	class := func(name string, age int, annotation, value string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Annotations: map[string]string{annotation: value}, CreationTimestamp: metav1.NewTime(time.Unix(int64(1000-age), 0))}
	}
	storage := func(name string, age int, annotation, value string) client.Object {
		return &storagev1.StorageClass{ObjectMeta: class(name, age, annotation, value)}
	}
	ingress := func(name string, age int, value string) client.Object {
		return &networkingv1.IngressClass{ObjectMeta: class(name, age, networkingv1.AnnotationIsDefaultIngressClass, value)}
	}
	priority := func(name string, value int32, usual bool) client.Object {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: usual}
	}
	for name, c := range map[string]struct {
		objects []client.Object
		want    Usual
	}{
		"none":            {want: Usual{NoIngress: true}},
		"none of several": {objects: []client.Object{storage("a", 1, usualStorage, "false"), storage("b", 1, "x", "true"), ingress("a", 1, "false"), priority("a", 1, false)}, want: Usual{NoIngress: true}},
		"one each": {
			objects: []client.Object{storage("a", 1, usualStorage, "true"), ingress("b", 1, "true"), priority("c", 1, true), priority("d", 0, false)},
			want:    Usual{Storage: "a", Ingress: "b", Priority: "c"},
		},
		"the older annotation": {objects: []client.Object{storage("a", 1, usualStorageBeta, "true")}, want: Usual{Storage: "a", NoIngress: true}},
		"the newest": {
			objects: []client.Object{storage("a", 3, usualStorage, "true"), storage("b", 1, usualStorage, "true"), storage("c", 2, usualStorage, "true"), ingress("a", 2, "true"), ingress("b", 1, "true")},
			want:    Usual{Storage: "b", Ingress: "b"},
		},
		"the first by name": {
			objects: []client.Object{storage("b", 1, usualStorage, "true"), storage("a", 1, usualStorage, "true"), ingress("d", 1, "true"), ingress("c", 1, "true")},
			want:    Usual{Storage: "a", Ingress: "c"},
		},
		"the lowest": {objects: []client.Object{priority("a", 3, true), priority("b", 1, true), priority("c", 2, true)}, want: Usual{Priority: "b", NoIngress: true}},
	} {
		got, err := Find(t.Context(), fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(c.objects...).Build())
		if err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}

// TestADefaultClassThatMayNotBeReadIsNotKnown, as for a person who plans a commit. The others are.
func TestADefaultClassThatMayNotBeReadIsNotKnown(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, GlobalDefault: true}).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, priority := list.(*schedulingv1.PriorityClassList); !priority {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", nil)
			}
			return c.List(ctx, list, opts...)
		}}).Build()
	if got, err := Find(t.Context(), c); err != nil || got != (Usual{Priority: "usual"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}
