package problem

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// TestAProblemSaysWhenToTryAgain, in whole seconds after which the next request is not too early, whoever answers with it.
func TestAProblemSaysWhenToTryAgain(t *testing.T) {
	for wait, want := range map[time.Duration]string{0: "", time.Nanosecond: "1", time.Second: "1", time.Second + time.Nanosecond: "2", time.Hour: "3600"} {
		p := New(TooManyRequests, "Wait.").After(wait)
		operation := func(middlewares ...func(huma.API) func(huma.Context, func(huma.Context))) http.Handler {
			mux := http.NewServeMux()
			api := humago.New(mux, huma.DefaultConfig("", ""))
			for _, m := range middlewares {
				api.UseMiddleware(m(api))
			}
			huma.Get(api, "/", func(context.Context, *struct{}) (*struct{}, error) { return nil, p })
			return mux
		}
		for name, handler := range map[string]http.Handler{
			"an operation": operation(),
			"a middleware": operation(func(api huma.API) func(huma.Context, func(huma.Context)) {
				return func(ctx huma.Context, _ func(huma.Context)) { p.Refuse(api, ctx) }
			}),
			"a handler": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { p.Write(w, "") }),
		} {
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequest("GET", "/", http.NoBody))
			if got, has := answer.Header()["Retry-After"]; answer.Code != http.StatusTooManyRequests || has != (want != "") || has && (len(got) != 1 || got[0] != want) {
				t.Errorf("%s after %s: %d, Retry-After %q, want %q", name, wait, answer.Code, got, want)
			}
		}
	}
}
