package sources

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// Hang answers with begin, then with each again and again until the client disconnects.
func Hang(begin, each string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		begin, each := begin, each
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		if strings.HasPrefix(req.URL.Path, "/v2/") && begin != "" {
			// JSON ignores spaces.
			begin, each = " ", strings.Repeat(" ", len(each))
		}
		_, _ = io.WriteString(w, begin)
		for req.Context().Err() == nil {
			if begin != "" {
				_, _ = io.WriteString(w, each)
				_ = http.NewResponseController(w).Flush()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// RedirectOnce redirects each request to the same path below /b, where next answers it.
func RedirectOnce(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if !strings.HasPrefix(req.URL.Path, "/b/") {
			http.Redirect(w, req, "/b"+req.URL.Path+"?"+req.URL.RawQuery, http.StatusFound)
			return
		}
		next(w, req)
	}
}
