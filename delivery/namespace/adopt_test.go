package namespace

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// sent is an apply as the API server receives it.
type sent struct {
	Metadata struct {
		Name, UID   string
		Labels      map[string]string
		Annotations map[string]string
	}
	Spec any
	// by is the field manager. forced: fields of others are taken over.
	by     string
	forced bool
}

// applies returns a server that records what is applied and answers with err.
func applies(t *testing.T, err error, objects ...client.Object) (client.WithWatch, *[]sent) {
	t.Helper()
	all := &[]sent{}
	c := server(t, interceptor.Funcs{Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
		text, broken := json.Marshal(o)
		options := (&client.ApplyOptions{}).ApplyOptions(opts)
		got := sent{by: options.FieldManager, forced: options.Force != nil && *options.Force}
		if broken = errors.Join(broken, json.Unmarshal(text, &got)); broken != nil {
			t.Error(broken)
		}
		*all = append(*all, got)
		return err
	}}, objects...)
	return c, all
}

var adoptedLabels = map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AdoptedLabel: "true"}

// TestANamespaceIsAdoptedUnlessAnotherOwnsIt: it gets the owner's labels and nothing else.
func TestANamespaceIsAdoptedUnlessAnotherOwnsIt(t *testing.T) {
	foreign := without(v1alpha1.TenantLabel, v1alpha1.ProjectLabel)
	for name, c := range map[string]struct {
		ns      *corev1.Namespace
		want    error
		adopted bool
	}{
		"none there":                   {nil, nil, false},
		"one of nobody":                {shop(foreign), nil, true},
		"one that was adopted before":  {shop(label(v1alpha1.AdoptedLabel, "true")), nil, true},
		"one that kubeop made":         {shop(label(v1alpha1.AdoptedLabel, "false")), nil, false},
		"made, of another project":     {shop(label(v1alpha1.AdoptedLabel, "false"), label(v1alpha1.ProjectLabel, "blog")), ErrTaken, false},
		"one of another tenant":        {shop(label(v1alpha1.TenantLabel, "rival")), ErrTaken, false},
		"one of another project":       {shop(label(v1alpha1.ProjectLabel, "blog")), ErrTaken, false},
		"one of nobody, being deleted": {shop(foreign, leaving), ErrLeaving, false},
		"its own, made, being deleted": {shop(label(v1alpha1.AdoptedLabel, "false"), leaving), nil, false},
		"another's, and being deleted": {shop(label(v1alpha1.TenantLabel, "rival"), leaving), ErrLeaving, false},
		"with a label of no project":   {shop(without(v1alpha1.TenantLabel), label(v1alpha1.ProjectLabel, "blog")), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			var there []client.Object
			if c.ns != nil {
				there = append(there, c.ns)
			}
			api, all := applies(t, nil, there...)
			adopted, err := Adopt(t.Context(), api, shopNamespace, acme)
			if !errors.Is(err, c.want) || adopted != c.adopted {
				t.Errorf("adopted: %t, want %t; %v, want %v", adopted, c.adopted, err, c.want)
			}
			if !adopted {
				if len(*all) != 0 {
					t.Errorf("applied %+v", *all)
				}
				return
			}
			want := sent{by: v1alpha1.FieldManager}
			want.Metadata.Name, want.Metadata.Labels = shopNamespace, adoptedLabels
			if diff := cmp.Diff([]sent{want}, *all, cmp.AllowUnexported(sent{})); diff != "" {
				t.Errorf("applied (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAdoptionThatFailedIsNoAdoption(t *testing.T) {
	api, _ := applies(t, errAway, shop(label(v1alpha1.AdoptedLabel, "true")))
	if adopted, err := Adopt(t.Context(), api, shopNamespace, acme); adopted || !errors.Is(err, errAway) {
		t.Errorf("adopted: %t, %v", adopted, err)
	}
	unread := server(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errAway
	}})
	if adopted, err := Adopt(t.Context(), unread, shopNamespace, acme); adopted || !errors.Is(err, errAway) {
		t.Errorf("adopted one that cannot be read: %t, %v", adopted, err)
	}
}

func TestAnAdoptedNamespaceGetsALevelOfPodSecurityOnlyIfOneIsSet(t *testing.T) {
	plain, restricted := Adopted(shopNamespace, acme, ""), Adopted(shopNamespace, acme, "restricted")
	if diff := cmp.Diff(adoptedLabels, plain.Labels); diff != "" {
		t.Errorf("without a level (-want +got):\n%s", diff)
	}
	if restricted.Labels["pod-security.kubernetes.io/enforce"] != "restricted" || restricted.Labels[v1alpha1.AdoptedLabel] != "true" {
		t.Errorf("with a level: %v", restricted.Labels)
	}
	if _, changed := shopLabels[v1alpha1.AdoptedLabel]; changed {
		t.Error("the labels of the owner are changed")
	}
}

// TestLeavingANamespaceAppliesNothingToIt, so that the API server removes what kubeop applied before. The UID keeps it from creating one anew.
func TestLeavingANamespaceAppliesNothingToIt(t *testing.T) {
	api, all := applies(t, nil)
	if err := Leave(t.Context(), api, shop()); err != nil {
		t.Fatal(err)
	}
	want := sent{by: v1alpha1.FieldManager, forced: true}
	want.Metadata.Name, want.Metadata.UID = shopNamespace, "ns-1"
	if diff := cmp.Diff([]sent{want}, *all, cmp.AllowUnexported(sent{})); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	refuses, _ := applies(t, errAway)
	if err := Leave(t.Context(), refuses, shop()); !errors.Is(err, errAway) {
		t.Errorf("got %v", err)
	}
}
