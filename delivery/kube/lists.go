package kube

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Lists passes to a Watch the API server's answers to the first lists of its cache. Otherwise only the log would show them.
type Lists struct {
	clock clock.Clock
	// awaitsList reports whether the first list of a kind has not arrived yet; listAnswered is called with the result of a list.
	awaitsList   func(kind schema.GroupVersionKind) bool
	listAnswered func(kind schema.GroupVersionKind, err error)
}

// NewLists returns Lists for one cache and the Watch over it, with their clock.
func NewLists(c clock.Clock) *Lists {
	return &Lists{clock: c, awaitsList: func(schema.GroupVersionKind) bool { return false }, listAnswered: func(schema.GroupVersionKind, error) {}}
}

// Of returns cache options with which the cache reports the results of its lists.
func (l *Lists) Of(o cache.Options) cache.Options {
	o.NewInformer = l.newInformer
	return o
}

func (l *Lists) newInformer(from toolscache.ListerWatcher, o runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
	if lists, ok := from.(*toolscache.ListWatch); ok {
		from = l.observing(lists, o.GetObjectKind().GroupVersionKind())
	}
	return toolscache.NewSharedIndexInformer(from, o, resync, by)
}

// observing reports the answers. A reflector requests a list in two ways: as a watch that begins with the existing objects, which reports
// an error as an event, and as a plain list. The reflector may use the watch for ever, and the watch's error seldom names the cause, so the
// plain list is requested as well.
func (l *Lists) observing(from *toolscache.ListWatch, kind schema.GroupVersionKind) *toolscache.ListWatch {
	observed := *from
	observed.ListWithContextFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		list, err := from.ListWithContext(ctx, o)
		l.listAnswered(kind, err)
		return list, err
	}
	var listing atomic.Bool
	// listOnce requests the plain list beside the watch, unless such a request is running.
	listOnce := func(ctx context.Context) {
		if listing.CompareAndSwap(false, true) {
			defer listing.Store(false)
			_, _ = observed.ListWithContextFunc(ctx, metav1.ListOptions{Limit: 1}) // listAnswered records the error.
		}
	}
	observed.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		events, err := from.WatchWithContext(ctx, o)
		if err != nil {
			l.listAnswered(kind, err)
			return events, err
		}
		if o.SendInitialEvents == nil || !*o.SendInitialEvents || !l.awaitsList(kind) {
			return events, nil
		}
		return watch.Filter(events, func(e watch.Event) (watch.Event, bool) {
			if e.Type == watch.Error && l.awaitsList(kind) {
				go listOnce(ctx)
			}
			return e, true
		}), nil
	}
	return &observed
}

// passes reports whether a list failed for a temporary reason: the state of the API server or of the network, and not the request itself.
func passes(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}
