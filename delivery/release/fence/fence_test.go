package fence

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// answers is an API server that answers everything with the text.
type answers string

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	_, _ = w.WriteString(string(a)) // It cannot fail.
	return w.Result(), nil
}

func TestTheFenceStopsWritesOnceAnotherProcessTookOver(t *testing.T) {
	const object, ownRecord = "/api/v1/namespaces/team/services/web", "/api/v1/namespaces/team/secrets/sh.helm.release.v1.web.v1"
	gone := errors.New("connection refused")
	tests := map[string]struct {
		change func(*Fence, *time.Time)
		method string
		path   string
		// version is what the record has, looks how often that was asked for.
		version string
		err     error
		looks   int
		want    error
	}{
		"before there is a record": {func(f *Fence, _ *time.Time) { f.record = "" }, http.MethodPost, object, "9", nil, 0, nil},
		"a moment after":           {nil, http.MethodPatch, object, "9", nil, 0, nil},
		"silent for long":          {silent, http.MethodPatch, object, "1", nil, 1, nil},
		"silent, and taken over":   {silent, http.MethodPatch, object, "9", nil, 1, ErrFenced},
		"silent, and removed":      {silent, http.MethodDelete, object, "", nil, 1, ErrFenced},
		"silent, and cut off":      {silent, http.MethodPost, object, "", gone, 1, gone},
		"reading is free":          {silent, http.MethodGet, object, "9", nil, 0, nil},
		"records guard themselves": {silent, http.MethodPut, ownRecord, "9", nil, 0, nil},
		"closed for objects":       {func(f *Fence, _ *time.Time) { f.Shut() }, http.MethodPost, object, "1", nil, 0, ErrFenced},
		"closed for records":       {func(f *Fence, _ *time.Time) { f.Shut() }, http.MethodPut, ownRecord, "1", nil, 0, ErrFenced},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now, looks := noon, 0
			f := &Fence{now: func() time.Time { return now }, look: func(context.Context, string) (string, error) {
				looks++
				return test.version, test.err
			}}
			f.Watch("sh.helm.release.v1.web.v1", "1")
			if test.change != nil {
				test.change(f, &now)
			}
			_, err := f.Wrap(answers("{}")).RoundTrip(httptest.NewRequest(test.method, test.path, nil))
			if !errors.Is(err, test.want) || looks != test.looks {
				t.Errorf("got %v after %d looks, want %v after %d", err, looks, test.want, test.looks)
			}
			if closed := errors.Is(test.want, ErrFenced); f.IsShut() != closed {
				t.Errorf("closed is %v, want %v", f.IsShut(), closed)
			}
		})
	}
}

func silent(_ *Fence, now *time.Time) { *now = now.Add(trust) }

func TestTheFenceReportsObjectsThatAreNotGone(t *testing.T) {
	tests := map[string]struct {
		answer string
		gone   bool
	}{
		"gone at once":              {`{"kind":"Status","status":"Success"}`, true},
		"gone, and shown as it was": {`{"kind":"Service","metadata":{"name":"web"}}`, true},
		"finalizers":                {`{"kind":"Service","metadata":{"name":"web","deletionTimestamp":"2026-05-04T12:00:00Z"}}`, false},
		"no JSON":                   {"k8s\x00", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := &Fence{now: func() time.Time { return noon }}
			r, err := f.Wrap(answers(test.answer)).RoundTrip(httptest.NewRequest(http.MethodDelete, "/api/v1/namespaces/team/services/web", nil))
			if err != nil {
				t.Fatal(err)
			}
			var body strings.Builder
			if err := r.Write(&body); err != nil || !strings.Contains(body.String(), test.answer) {
				t.Errorf("the caller reads %q, %v", body.String(), err)
			}
			if f.AllGone() != test.gone {
				t.Errorf("leaving: %v", f.leaving)
			}
		})
	}
}
