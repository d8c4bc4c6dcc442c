package sources

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// Hang answers with the beginning of something, then with something more each time until the client goes.
func Hang(begin, each string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		begin, each := begin, each
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		if strings.HasPrefix(req.URL.Path, "/v2/") && begin != "" {
			// To JSON, which registries speak, this says nothing.
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

// RedirectOnce redirects each request to the same path below /b, which next answers.
func RedirectOnce(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if !strings.HasPrefix(req.URL.Path, "/b/") {
			http.Redirect(w, req, "/b"+req.URL.Path+"?"+req.URL.RawQuery, http.StatusFound)
			return
		}
		next(w, req)
	}
}
