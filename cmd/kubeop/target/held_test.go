package target

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
)

const heldHash = "0123456789abcdef0123456789abcdef01234567"

// TestTypedTextConfirmsWhatIsHeld if it is the text that kubeop asks for.
func TestTypedTextConfirmsWhatIsHeld(t *testing.T) {
	repository := Object{Kind: Repository, Ref: identity.Ref{Tenant: "acme"}}
	project := Object{Kind: Project, Ref: identity.Ref{Tenant: "acme", Project: "shop"}}
	web := Object{Kind: App, Ref: identity.Ref{Tenant: "acme", Project: "shop", App: "web"}}
	held := v1alpha1.RepositoryStatus{HeldRevision: "main@sha1:" + heldHash, HeldUntil: &metav1.Time{Time: time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)}}
	rewritten := v1alpha1.RepositoryStatus{
		HeldRevision: "main@sha1:" + heldHash, LastAttemptedRevision: "main@sha1:76543210fedcba9876543210fedcba9876543210",
	}
	rewritten.Conditions = []metav1.Condition{{Type: v1alpha1.AcceptedCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.HistoryRewrittenReason}}
	unsigned := rewritten
	unsigned.Conditions = []metav1.Condition{{Type: v1alpha1.AcceptedCondition, Status: metav1.ConditionFalse, Reason: "Other"}}
	promotions := &v1alpha1.Project{}
	promotions.Status.HeldPromotions = []v1alpha1.HeldPromotion{
		{Token: "aaaa1111", App: "web", Changes: "image 1 to 2"}, {Token: "bbbb2222", App: "api", Changes: "chart 1 to 2"},
	}
	some := promotions.DeepCopy()
	some.Annotations = map[string]string{v1alpha1.ConfirmPromotionAnnotation: "bbbb2222"}
	for name, tc := range map[string]struct {
		of     Object
		object client.Object
		// lines are those of the only thing that is held; nil for nothing. says is what kubeop does then.
		lines            []string
		says, annotation string
		tokens           []string
		// typed has the value of the annotation for what a person types; "" for what confirms nothing.
		typed map[string]string
	}{
		"nothing of an app":        {of: web, object: &v1alpha1.App{}},
		"nothing of a repository":  {of: repository, object: &v1alpha1.Repository{}},
		"nothing of a project":     {of: project, object: &v1alpha1.Project{}},
		"nothing of a tenant":      {of: Object{Kind: Tenant, Ref: identity.Ref{Tenant: "acme"}}, object: &v1alpha1.Tenant{}},
		"a commit no one may sign": {of: repository, object: &v1alpha1.Repository{Status: unsigned}},
		"deletions of an app": {
			of: web, object: &v1alpha1.App{Status: v1alpha1.AppStatus{Held: []string{"claim data"}, HeldToken: "1a2b3c4d"}},
			lines: []string{"claim data"}, says: "deletes what the app acme/shop/web holds", annotation: v1alpha1.ConfirmAnnotation, tokens: []string{"1a2b3c4d"},
			typed: map[string]string{"1a2b3c4d": "1a2b3c4d", "1a2b3c4": "", "": "", "all": ""},
		},
		"deletions of a repository": {
			of: repository, object: &v1alpha1.Repository{Status: v1alpha1.RepositoryStatus{Held: []string{"app acme/shop/db"}, HeldToken: "1a2b3c4d"}},
			lines: []string{"app acme/shop/db"}, says: "deletes what the repository acme holds", annotation: v1alpha1.ConfirmAnnotation, tokens: []string{"1a2b3c4d"},
			typed: map[string]string{"1a2b3c4d": "1a2b3c4d", "x": ""},
		},
		"a commit in a freeze": {
			of: repository, object: &v1alpha1.Repository{Status: held}, lines: []string{heldHash + " waits until 2026-11-30T08:00:00Z, the end of a freeze"},
			says: "applies commit " + heldHash + " of the repository acme", annotation: v1alpha1.ConfirmFreezeAnnotation, tokens: []string{"01234567"},
			typed: map[string]string{"01234567": heldHash, heldHash: heldHash, "0123456": "", "01234568": "", heldHash + "0": ""},
		},
		"a commit of another history": {
			of: repository, object: &v1alpha1.Repository{Status: rewritten}, lines: []string{heldHash + " does not descend from the last accepted one: main@sha1:76543210"},
			says: "applies commit " + heldHash, annotation: v1alpha1.ConfirmHistoryAnnotation, tokens: []string{"01234567"}, typed: map[string]string{"01234567": heldHash},
		},
		"promotions": {
			of: project, object: promotions, lines: []string{"aaaa1111 web: image 1 to 2", "bbbb2222 api: chart 1 to 2"},
			says: "promotes them to the project acme/shop", annotation: v1alpha1.ConfirmPromotionAnnotation, tokens: []string{"aaaa1111", "bbbb2222"},
			typed: map[string]string{"aaaa1111": "aaaa1111", "bbbb2222,aaaa1111": "bbbb2222,aaaa1111", "aaaa1111,cccc3333": "", "": "", ",": ""},
		},
		"promotions, some of which are confirmed": {
			of: project, object: some, lines: []string{"aaaa1111 web: image 1 to 2", "bbbb2222 api: chart 1 to 2"},
			says: "promotes", annotation: v1alpha1.ConfirmPromotionAnnotation, tokens: []string{"aaaa1111", "bbbb2222"},
			typed: map[string]string{"aaaa1111": "aaaa1111,bbbb2222", "bbbb2222": "bbbb2222"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := AllHeld(tc.of, tc.object)
			if tc.lines == nil {
				if len(all) != 0 {
					t.Errorf("it holds %+v", all)
				}
				return
			}
			if len(all) != 1 {
				t.Fatalf("it holds %+v", all)
			}
			h := all[0]
			if diff := cmp.Diff(tc.lines, h.Lines); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.tokens, h.Tokens); diff != "" {
				t.Errorf("tokens (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(h.Does, tc.says) || h.Annotation != tc.annotation || h.What == "" || h.Stays == "" || h.Next == "" {
				t.Errorf("got %+v", h)
			}
			for typed, want := range tc.typed {
				if got, ok := h.Confirm(typed); got != want || ok != (want != "") {
					t.Errorf("%q confirms %q, %t, want %q", typed, got, ok, want)
				}
			}
		})
	}
}

// TestNoMorePromotionsAreConfirmedThanAProjectHolds: the annotation does not grow with each confirmation.
func TestNoMorePromotionsAreConfirmedThanAProjectHolds(t *testing.T) {
	many := make([]string, v1alpha1.MaxHeldPromotions)
	for i := range many {
		many[i] = strings.Repeat("a", 7) + string(rune('a'+i%26)) + strings.Repeat("b", i/26)
	}
	project := &v1alpha1.Project{}
	project.Status.HeldPromotions = []v1alpha1.HeldPromotion{{Token: "ffff0000"}}
	project.Annotations = map[string]string{v1alpha1.ConfirmPromotionAnnotation: strings.Join(many, ",")}
	value, _ := AllHeld(Object{Kind: Project}, project)[0].Confirm("ffff0000")
	if got := strings.Split(value, ","); len(got) != v1alpha1.MaxHeldPromotions || got[0] != "ffff0000" {
		t.Errorf("%d tokens are confirmed: %s", len(got), value)
	}
}

// TestThePathOfAnObjectIsItsNameInCommands.
func TestThePathOfAnObjectIsItsNameInCommands(t *testing.T) {
	for want, object := range map[string]client.Object{
		"acme/shop/web": &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "web"}},
		"acme/shop":     &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}},
		"acme":          &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}},
	} {
		if got := PathOf(object); got != want {
			t.Errorf("the path is %q, want %q", got, want)
		}
	}
}
