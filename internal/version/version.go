// Package version says which build this is.
package version

import (
	"encoding/json"
	"net/http"
	"runtime"
)

// Version and Commit are set at link time.
var (
	Version = "dev"
	Commit  = "unknown"
)

// Handler answers with the build as JSON.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// A client that went away is none of our concern.
		_ = json.NewEncoder(w).Encode(map[string]string{
			"service": "kubeop-operator", "version": Version, "commit": Commit, "go": runtime.Version(),
		})
	})
}
