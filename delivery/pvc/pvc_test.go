package pvc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func claimOf(own v1alpha1.ClaimDeletionPolicy, phase corev1.PersistentVolumeClaimPhase) *Claim {
	c := &Claim{ObjectMeta: metav1.ObjectMeta{Name: "data", UID: "u"}, Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
	if own != "" {
		c.Annotations = map[string]string{v1alpha1.ClaimPolicyAnnotation: string(own)}
	}
	return c
}

// TestAClaimWithDataIsDeletedOnlyWithPolicyDeleteAndConfirmed is the table of docs/data.md.
func TestAClaimWithDataIsDeletedOnlyWithPolicyDeleteAndConfirmed(t *testing.T) {
	const none, retain, remove = v1alpha1.ClaimDeletionPolicy(""), v1alpha1.ClaimRetain, v1alpha1.ClaimDelete
	for name, c := range map[string]struct {
		app, project, tenant v1alpha1.ClaimDeletionPolicy
		confirmed            bool
		phase                corev1.PersistentVolumeClaimPhase
		want                 bool
	}{
		"nothing set":                           {none, none, none, false, corev1.ClaimBound, false},
		"nothing set, confirmed":                {none, none, none, true, corev1.ClaimBound, false},
		"Retain, confirmed":                     {retain, none, none, true, corev1.ClaimBound, false},
		"Delete of the tenant":                  {none, none, remove, false, corev1.ClaimBound, false},
		"Delete of the tenant, confirmed":       {none, none, remove, true, corev1.ClaimBound, true},
		"Delete of the project, confirmed":      {none, remove, retain, true, corev1.ClaimBound, true},
		"Retain of the project, confirmed":      {none, retain, remove, true, corev1.ClaimBound, false},
		"Delete of the app":                     {remove, retain, retain, false, corev1.ClaimBound, false},
		"Delete of the app, confirmed":          {remove, retain, retain, true, corev1.ClaimBound, true},
		"Retain of the app, confirmed":          {retain, remove, remove, true, corev1.ClaimBound, false},
		"Delete, confirmed, its volume is lost": {remove, none, none, true, corev1.ClaimLost, true},
		"Retain, its volume is lost":            {retain, none, none, true, corev1.ClaimLost, false},
		"Retain, never bound":                   {retain, none, none, false, corev1.ClaimPending, true},
	} {
		t.Run(name, func(t *testing.T) {
			terms := Terms{Policies: []v1alpha1.ClaimDeletionPolicy{c.project, c.tenant}, Confirmed: map[types.UID]bool{"u": c.confirmed}}
			if got := terms.Take(claimOf(c.app, c.phase)); got != c.want {
				t.Errorf("taken: %v, want %v", got, c.want)
			}
		})
	}
}

func TestARestoredClaimHoldsDataBeforeItIsBoundAgain(t *testing.T) {
	c := claimOf("", corev1.ClaimPending)
	c.Spec.VolumeName = "pvc-1"
	if !HoldsData(c) {
		t.Error("it names its volume")
	}
}

func TestAClaimThatIsBeingDeletedKeepsNothing(t *testing.T) {
	gone, kept := claimOf("", corev1.ClaimBound), claimOf("", corev1.ClaimBound)
	gone.DeletionTimestamp = &metav1.Time{}
	leave, stay := Terms{}.Divide([]Claim{*gone, *kept})
	if len(leave) != 0 || len(stay) != 1 || stay[0].DeletionTimestamp != nil {
		t.Errorf("go %v, stay %v", leave, stay)
	}
}

func TestClaimsWithoutDataGoAndOthersStay(t *testing.T) {
	empty, full, confirmed := claimOf("", corev1.ClaimPending), claimOf("", corev1.ClaimBound), claimOf(v1alpha1.ClaimDelete, corev1.ClaimBound)
	empty.Name, full.Name, confirmed.Name = "empty", "full", "confirmed"
	full.UID, confirmed.UID = "v", "w"
	leave, stay := Terms{Confirmed: map[types.UID]bool{"w": true}}.Divide([]Claim{*empty, *full, *confirmed})
	if got := Arguments(leave) + ", " + Arguments(stay); got != "empty confirmed, full" {
		t.Errorf("go and stay: %s", got)
	}
}

// TestAClaimIsDeletedAsItWasRead: one that was bound meanwhile holds data.
func TestAClaimIsDeletedAsItWasRead(t *testing.T) {
	claims := corev1.Resource("persistentvolumeclaims")
	for name, c := range map[string]struct {
		err  error
		says string
		sent int
	}{
		"deleted":           {nil, "", 2},
		"gone meanwhile":    {apierrors.NewNotFound(claims, "data"), "", 2},
		"changed meanwhile": {apierrors.NewConflict(claims, "data", errAway), "deleting claim data: ", 1},
		"an error":          {errAway, "deleting claim data: the API server is away", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []client.DeleteOptions
			api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
					sent = append(sent, *(&client.DeleteOptions{}).ApplyOptions(options))
					return c.err
				},
			})
			first, second := claimOf("", corev1.ClaimPending), claimOf("", corev1.ClaimPending)
			first.ResourceVersion, second.Name = "7", "other"
			err := Delete(t.Context(), api, []Claim{*first, *second})
			if (err != nil) != (c.says != "") || err != nil && !strings.HasPrefix(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if len(sent) != c.sent || *sent[0].Preconditions.UID != "u" || *sent[0].Preconditions.ResourceVersion != "7" {
				t.Errorf("deleted with %+v", sent)
			}
		})
	}
}

func TestTheSizeOfAClaimIsItsVolumes(t *testing.T) {
	c := claimOf("", corev1.ClaimPending)
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	if got := Size(c); got != "1Gi" {
		t.Errorf("before it is bound: %s", got)
	}
	c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	if got := Size(c); got != "2Gi" {
		t.Errorf("bound: %s", got)
	}
}

func TestAConfirmationCountsWhileItsObjectIsDeleted(t *testing.T) {
	now := metav1.Now()
	marks := map[string]string{v1alpha1.ConfirmedClaimsAnnotation: Confirm(now.Time, []string{"a", "b"})}
	leaving := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Annotations: marks, DeletionTimestamp: &now}}
	living := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Annotations: marks}}
	if got := Confirmed(client.Object(living)); len(got) != 0 {
		t.Errorf("of an object that lives: %v", got)
	}
	if diff := cmp.Diff(map[types.UID]bool{"a": true, "b": true}, Confirmed(living, leaving)); diff != "" {
		t.Error(diff)
	}
	exact := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for age, counts := range map[time.Duration]bool{fresh: true, fresh + time.Second: false, -fresh: true, -fresh - time.Second: false} {
		tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &exact, Annotations: map[string]string{
			v1alpha1.ConfirmedClaimsAnnotation: Confirm(exact.Add(-age), []string{"a"}),
		}}}
		if got := Confirmed(tenant); got["a"] != counts {
			t.Errorf("confirmed %s before: %v", age, got)
		}
	}
	for name, value := range map[string]string{
		"an earlier deletion, which did not happen": Confirm(now.Add(-time.Hour), []string{"a"}),
		"no time":   "a",
		"no claims": "",
	} {
		leaving.Annotations = map[string]string{v1alpha1.ConfirmedClaimsAnnotation: value}
		if got := Confirmed(leaving); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestManyClaimsAreNamedInPart(t *testing.T) {
	var many []Claim
	for range 12 {
		c := claimOf("", corev1.ClaimBound)
		c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		many = append(many, *c)
	}
	if got := Names(many[:2]); got != "data (1Gi), data (1Gi)" {
		t.Error(got)
	}
	if got := Names(many); len(got) < 20 || got[len(got)-10:] != "and 2 more" {
		t.Error(got)
	}
	if Arguments(many) != "--all" || Arguments(many[:2]) != "data data" {
		t.Error(Arguments(many), Arguments(many[:2]))
	}
}

// unreadable is an API server that lists nothing.
type unreadable struct{ client.Reader }

func (unreadable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errAway
}

var errAway = errors.New("the API server is away")

// TestClaimsThatCannotBeListedAreNoEmptyList, because what is not listed would be deleted.
func TestClaimsThatCannotBeListedAreNoEmptyList(t *testing.T) {
	if all, err := List(t.Context(), unreadable{}, "shop"); all != nil || !errors.Is(err, errAway) {
		t.Errorf("got %v, %v", all, err)
	}
}

func TestClaimsOfOneNamespaceAreListedByName(t *testing.T) {
	of := func(namespace, name string) *Claim {
		return &Claim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	all, err := List(t.Context(), fake.NewClientBuilder().WithObjects(of("shop", "b"), of("blog", "a"), of("shop", "a")).Build(), "shop")
	if err != nil || len(all) != 2 || all[0].Name != "a" || all[1].Name != "b" || all[0].Namespace != "shop" {
		t.Errorf("got %v, %v", all, err)
	}
}

func TestInAnAdoptedNamespaceOnlyOwnClaimsGo(t *testing.T) {
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: "legacy"}, Spec: v1alpha1.ProjectSpec{ClaimDeletionPolicy: v1alpha1.ClaimDelete}}
	own := map[string]string{v1alpha1.TenantLabel: v1alpha1.PlatformTenant, v1alpha1.ProjectLabel: "legacy", v1alpha1.AppLabel: "db"}
	for name, c := range map[string]struct {
		place  *v1alpha1.PlatformNamespace
		labels map[string]string
		bound  corev1.PersistentVolumeClaimPhase
		goes   bool
	}{
		"its own":                 {&v1alpha1.PlatformNamespace{Adopt: true}, own, corev1.ClaimBound, true},
		"another's":               {&v1alpha1.PlatformNamespace{Adopt: true}, nil, corev1.ClaimBound, false},
		"another's, without data": {&v1alpha1.PlatformNamespace{Adopt: true}, nil, corev1.ClaimPending, false},
		"another's, in a namespace that was made": {&v1alpha1.PlatformNamespace{}, nil, corev1.ClaimBound, true},
		"another's, of a tenant":                  {nil, nil, corev1.ClaimBound, true},
	} {
		project.Spec.Namespace = c.place
		claim := &Claim{ObjectMeta: metav1.ObjectMeta{UID: "a", Labels: c.labels}, Status: corev1.PersistentVolumeClaimStatus{Phase: c.bound}}
		terms := TermsOf(project, &v1alpha1.Tenant{})
		terms.Confirmed = map[types.UID]bool{"a": true}
		if got := terms.Take(claim); got != c.goes {
			t.Errorf("%s: goes %t, want %t", name, got, c.goes)
		}
	}
}
