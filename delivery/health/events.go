package health

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxEvents bounds how many events of one object are read.
const maxEvents = 200

// eventList holds the events of one object.
type eventList []corev1.Event

// events lists the events of an object. The core API also returns those of events.k8s.io.
func (e Explainer) events(ctx context.Context, o client.Object) (eventList, error) {
	if o.GetUID() == "" {
		return nil, nil
	}
	list := &corev1.EventList{}
	of := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("involvedObject.uid", string(o.GetUID()))}
	err := e.list(ctx, list, client.InNamespace(o.GetNamespace()), of, client.Limit(maxEvents))
	return list.Items, err
}

// first returns the message of an event with the first of the reasons that has one. Of several events with that reason, it takes the one
// that began last: events that recur take turns in being the newest, so their message would change each time.
func (l eventList) first(reasons ...string) string {
	for _, reason := range reasons {
		if e := l.latest(func(e corev1.Event) bool { return e.Reason == reason }); e != nil {
			return e.Message
		}
	}
	return ""
}

// warning returns the message of the warning that began last.
func (l eventList) warning() string {
	if e := l.latest(func(e corev1.Event) bool { return e.Type == corev1.EventTypeWarning }); e != nil {
		return e.Message
	}
	return ""
}

// killing returns the message about the failed probe that made the kubelet restart a container after that time.
func (l eventList) killing(after time.Time) string {
	e := l.latest(func(e corev1.Event) bool {
		return e.Reason == "Unhealthy" && !strings.HasPrefix(e.Message, "Readiness") && !seenLast(e).Before(after)
	})
	if e == nil {
		return ""
	}
	return e.Message
}

func (l eventList) latest(match func(corev1.Event) bool) *corev1.Event {
	var latest *corev1.Event
	for i := range l {
		if !match(l[i]) || latest != nil && !later(&l[i], latest) {
			continue
		}
		latest = &l[i]
	}
	return latest
}

// later orders events by their beginning, then by name, so that the choice is always the same.
func later(x, y *corev1.Event) bool {
	if a, b := began(x), began(y); !a.Equal(b) {
		return a.After(b)
	}
	return x.Name > y.Name
}

func began(e *corev1.Event) time.Time {
	switch {
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

func seenLast(e corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return began(&e)
}
