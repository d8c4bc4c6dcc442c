package memory

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EachRequest calls run once for each request about objects that run makes, and lets that request fail. It reports the requests whose error run
// does not return. It returns the number of requests.
func (s *Server) EachRequest(t testing.TB, run func() error) int {
	t.Helper()
	for n := 1; ; n++ {
		failed, err := s.FailNth(n, run)
		// A request that the run before cancelled may arrive in this one, which then ends well.
		for again := 0; again < 3 && failed != "" && err == nil; again++ {
			failed, err = s.FailNth(n, run)
		}
		if failed == "" {
			if err != nil {
				t.Errorf("no request failed: %v", err)
			}
			return n - 1
		}
		if err == nil || !strings.Contains(err.Error(), OutOfOrder) {
			t.Errorf("the error of %s is not returned: %v", failed, err)
		}
	}
}

// FailNth calls run and lets its n-th request about objects fail, counted from 1. It returns that request, "" if there were too few, and the error
// of run.
func (s *Server) FailNth(n int, run func() error) (failed string, err error) {
	answer, seen := s.Intercept, 0
	defer func() { s.Intercept = answer }()
	s.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if about(r.URL.Path) {
			if seen++; seen == n {
				failed = r.Method + " " + r.URL.Path
				return refuse(w)
			}
		}
		return answer != nil && answer(w, r)
	}
	err = run()
	return failed, err
}

// about reports whether the path of a request is that of objects, and not of the discovery of kinds.
func about(path string) bool {
	return strings.HasPrefix(path, "/api/v1/") || strings.Count(path, "/") > 3
}

// OutOfOrder is the message of a request that fails.
const OutOfOrder = "the server is out of order"

// refuse answers with an error that clients do not send again for.
func refuse(w http.ResponseWriter) bool {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	return json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonBadRequest,
		Message: OutOfOrder, Code: http.StatusBadRequest,
	}) == nil
}
