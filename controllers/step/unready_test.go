package step

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/kube"
)

// TestAListThatIsUnderWay is not in the status until it takes long.
func TestAListThatIsUnderWay(t *testing.T) {
	b := newFixture(t, web())
	now := b.Clock.Now()
	began := func(ago time.Duration) error {
		return Fail(v1alpha1.ApplyFailedReason, fmt.Errorf("applying: %w", &kube.Unready{What: "ConfigMap", Since: now.Add(-ago)}))
	}
	result, err := b.run(t, nil, began(listLimit-time.Second), errors.New("must not run"))
	if err != nil || result.RequeueAfter != listLook {
		t.Errorf("got %+v and %v", result, err)
	}
	b.read(t, b.app)
	if got := conditionTexts(b.app); len(got) != 0 || b.patches != 0 {
		t.Errorf("%d patches wrote %v", b.patches, got)
	}
	result, err = b.run(t, nil, began(listLimit))
	b.read(t, b.app)
	if err != nil || result.RequeueAfter != listLook || conditions.GetMessage(b.app, v1alpha1.ReadyCondition) != "applying: watching ConfigMap: the first list has not arrived yet" ||
		conditions.GetReason(b.app, v1alpha1.ReadyCondition) != v1alpha1.ProgressingReason {
		t.Errorf("got %+v, %v, conditions %v", result, err, conditionTexts(b.app))
	}
}

// TestAKindThatCannotBeListedIsReportedAtOnce and is a failure as any other.
func TestAKindThatCannotBeListedIsReportedAtOnce(t *testing.T) {
	b := newFixture(t, web())
	no := errors.New("the server does not allow this method")
	_, err := b.run(t, &kube.Unready{What: "Widget", Since: b.Clock.Now(), Err: no})
	b.read(t, b.app)
	if !errors.Is(err, no) || conditions.GetMessage(b.app, v1alpha1.ReadyCondition) != "watching Widget: the API server does not list it: the server does not allow this method" {
		t.Errorf("got %v, conditions %v", err, conditionTexts(b.app))
	}
}

func TestAnObjectThatNeedsAListIsWokenByIt(t *testing.T) {
	b := newFixture(t, web())
	woken := make(chan client.ObjectKey, 1)
	b.Wake = func(key client.ObjectKey) { woken <- key }
	watch := kube.NewLocalWatch(&rest.Config{Host: "http://127.0.0.1:1"}, &http.Client{Transport: http.DefaultTransport}, logr.Discard(), clock.RealClock{}) // Nobody answers there.
	_, err := watch.Version(t.Context(), "kubeop-a-b", "ConfigMap", "values")
	for range 2 {
		if _, err := b.run(t, err); err != nil {
			t.Fatal(err)
		}
	}
	if len(woken) != 0 {
		t.Error("woken before there is news of the list")
	}
	watch.Forget("kubeop-a-b")
	if got := <-woken; got != client.ObjectKeyFromObject(b.app) {
		t.Errorf("woke %s", got)
	}
	if _, err := b.run(t, err); err != nil { // An object that asks after the change is woken, too.
		t.Fatal(err)
	}
	<-woken
}
