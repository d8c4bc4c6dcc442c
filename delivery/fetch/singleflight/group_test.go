package singleflight

import (
	"context"
	"sync/atomic"
	"testing"
)

func TestCallerWhoGivesUpDoesNotAnswerForOthers(t *testing.T) {
	group := Group[string]{Clock: &atomic.Int64{}}
	gone, cancel := context.WithCancel(t.Context())
	arrived := group.Clock.Add(1)
	began := make(chan struct{})
	go func() {
		_, _ = group.Do(gone, "x", arrived, func() (string, error) {
			close(began)
			<-gone.Done()
			return "", gone.Err()
		})
	}()
	<-began
	go cancel()
	got, err := group.Do(t.Context(), "x", arrived, func() (string, error) { return "mine", nil })
	if got != "mine" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}
