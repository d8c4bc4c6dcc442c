package pushes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

func acme() *v1alpha1.Repository {
	return &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.RepositorySpec{Tenant: "acme"}}
}

func TestAHookWithoutAKeyIsReported(t *testing.T) {
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: name}, Data: data}
	}
	api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(
		secret("good", map[string][]byte{"token": []byte("x")}), secret("empty", map[string][]byte{"token": nil}), secret("other", map[string][]byte{"key": []byte("x")})).Build()
	cases := map[string]struct {
		name, secret string
		interval     time.Duration
		noHook       bool
		reason, want string
	}{
		"a key":                      {name: "acme", secret: "good"},
		"no Secret named":            {name: "acme", reason: "HookNotSet", want: "pushes are found by polling only, every minute. To deliver them at once, an administrator sets spec.repository.hookSecretRef of Tenant acme"},
		"no Secret named, platform":  {name: "platform", interval: 30 * time.Second, reason: "HookNotSet", want: "pushes are found by polling only, every 30s. To deliver them at once, an administrator sets platform.hookSecretRef of the chart"},
		"no Secret there":            {name: "acme", secret: "none", reason: "SecretMissing", want: "there is no Secret kubeop-system/none, which spec.hookSecretRef names: reports of pushes are refused, and pushes are found by polling only, every minute. token is the key that the Git host signs with; an administrator of the cluster may run: kubectl create secret generic none -n kubeop-system --from-literal=token=... --dry-run=client -o yaml | kubectl apply -f -"},
		"a command for that":         {name: "acme", secret: "none", reason: "SecretMissing", want: "there is no Secret kubeop-system/none, which spec.hookSecretRef names: reports of pushes are refused, and pushes are found by polling only, every minute. token is the key that the Git host signs with; an administrator of the cluster may run: kubectl create secret generic none -n kubeop-system --from-literal=token=... --dry-run=client -o yaml | kubectl apply -f -"},
		"an empty key":               {name: "acme", secret: "empty", reason: "SecretMissing", want: `there is no key "token" in the Secret kubeop-system/empty, which spec.hookSecretRef names: reports of pushes are refused, and pushes are found by polling only, every minute. token is the key that the Git host signs with; an administrator of the cluster may run: kubectl create secret generic empty -n kubeop-system --from-literal=token=... --dry-run=client -o yaml | kubectl apply -f -`},
		"another key":                {name: "acme", secret: "other", reason: "SecretMissing", want: `there is no key "token" in the Secret kubeop-system/other, which spec.hookSecretRef names: reports of pushes are refused, and pushes are found by polling only, every minute. token is the key that the Git host signs with; an administrator of the cluster may run: kubectl create secret generic other -n kubeop-system --from-literal=token=... --dry-run=client -o yaml | kubectl apply -f -`},
		"keys that nobody has read":  {name: "acme", secret: "other", noHook: true},
		"no Secret, and no hook run": {name: "acme", secret: "none", noHook: true, reason: "SecretMissing", want: "there is no Secret kubeop-system/none, which spec.hookSecretRef names: reports of pushes are refused, and pushes are found by polling only, every minute. token is the key that the Git host signs with; an administrator of the cluster may run: kubectl create secret generic none -n kubeop-system --from-literal=token=... --dry-run=client -o yaml | kubectl apply -f -"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := &Hook{Namespace: "kubeop-system", Secrets: api, Keys: api}
			if tc.noHook {
				h.Keys = nil
			}
			r := acme()
			r.Name, r.Spec.Interval.Duration = tc.name, tc.interval
			if tc.secret != "" {
				r.Spec.HookSecretRef = &v1alpha1.LocalSecretReference{Name: tc.secret}
			}
			note := h.Note(t.Context(), r)
			if note.Condition != "HookClosed" || note.Reason != tc.reason || (note.Status == metav1.ConditionTrue) != (tc.reason != "") || note.Message != tc.want {
				t.Errorf("got %+v, want %s: %s", note, tc.reason, tc.want)
			}
			if warns := note.Event != ""; warns != (tc.reason == "SecretMissing") {
				t.Errorf("event %q: only a Secret that was named and is missing is a warning", note.Event)
			}
		})
	}
}

func TestTheHookAndTheSpecDecideHowOftenARepositoryIsPolled(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	called := func(ago time.Duration) string { return now.Add(-ago).Format(time.RFC3339Nano) }
	refused := failure.New(failure.ErrAuthentication, "no")
	credentials := func(r *v1alpha1.Repository) { r.Spec.SecretRef = &v1alpha1.LocalSecretReference{Name: "git"} }
	all := func(changes ...func(*v1alpha1.Repository)) func(*v1alpha1.Repository) {
		return func(r *v1alpha1.Repository) {
			for _, change := range changes {
				change(r)
			}
		}
	}
	cases := map[string]struct {
		called string
		closed bool
		// ran is the time since the first reconciliation, by default settling.
		ran    time.Duration
		failed error
		change func(*v1alpha1.Repository)
		want   time.Duration
	}{
		"never called":                     {want: unreported},
		"called just now":                  {called: called(0), want: 10 * time.Minute},
		"called a day ago":                 {called: called(calledLately - time.Second), want: 10 * time.Minute},
		"called too long ago":              {called: called(calledLately), want: unreported},
		"called before the clock was back": {called: called(-time.Hour), want: 10 * time.Minute},
		"called, and the key is gone":      {called: called(0), closed: true, want: unreported},
		"called at no time":                {called: "yesterday", want: unreported},
		"called, and just started":         {called: called(0), ran: settling - time.Second, want: unreported},
		"an interval":                      {change: func(r *v1alpha1.Repository) { r.Spec.Interval.Duration = time.Hour }, want: time.Hour},
		"an interval, and called": {called: called(0), want: 5 * time.Second,
			change: func(r *v1alpha1.Repository) { r.Spec.Interval.Duration = 5 * time.Second }},
		"refused credentials":           {failed: refused, change: credentials, want: 5 * time.Minute},
		"asked for credentials":         {failed: refused, want: unreported},
		"refused, with an interval":     {failed: refused, change: all(credentials, func(r *v1alpha1.Repository) { r.Spec.Interval.Duration = time.Second }), want: time.Second},
		"credentials that are all well": {change: credentials, want: unreported},
		"a server that is away":         {failed: failure.New(failure.ErrUnavailable, "away"), change: credentials, want: unreported},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := acme()
			r.Annotations = map[string]string{v1alpha1.HookCalledAnnotation: tc.called}
			if tc.change != nil {
				tc.change(r)
			}
			if tc.ran == 0 {
				tc.ran = settling
			}
			h := &Hook{}
			h.Interval(acme(), false, nil, now.Add(-tc.ran))
			if got := h.Interval(r, tc.closed, tc.failed, now); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestAPushIsFoundWithinAMinute: intervals are spread by 5 % in both directions.
func TestAPushIsFoundWithinAMinute(t *testing.T) {
	if longest := unreported + unreported/20; longest > time.Minute {
		t.Errorf("two polls are up to %s apart", longest)
	}
}
