package transport

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
)

// dockerEntry is an entry in a .dockerconfigjson.
type dockerEntry struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// parseDockerConfig reads a .dockerconfigjson: the credentials by host[:port][/path]. It does not use Docker's library, which would run the
// credential helpers that the file names.
func parseDockerConfig(text []byte) (map[string]dockerEntry, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var config struct {
		Auths map[string]dockerEntry `json:"auths"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, failure.New(failure.ErrInvalid, ".dockerconfigjson of the Secret is not the JSON of a Docker configuration")
	}
	byPlace := make(map[string]dockerEntry, len(config.Auths))
	for key, entry := range config.Auths {
		if entry.Auth != "" {
			user, password, ok := decodeBasic(entry.Auth)
			if !ok {
				return nil, failure.New(failure.ErrInvalid, ".dockerconfigjson of the Secret: auth of %q is not base64 of user:password", few.Quote(key))
			}
			entry.Username, entry.Password = user, password
		}
		byPlace[registryPlace(key)] = entry
	}
	return byPlace, nil
}

func decodeBasic(auth string) (user, password string, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(auth)
	if err != nil {
		return "", "", false
	}
	return strings.Cut(strings.TrimRight(string(raw), "\x00"), ":")
}

// registryPlace returns the host[:port][/path] of a key of a .dockerconfigjson, which may be a URL. Docker adds the version of its API to
// the host, and writes the URL of an old index for its Hub: both mean the host.
func registryPlace(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	host, path, _ := strings.Cut(key, "/")
	host, path = strings.ToLower(host), strings.Trim(path, "/")
	if host == "index.docker.io" || host == "docker.io" {
		host = "registry-1.docker.io"
	}
	if path == "" || path == "v1" || path == "v2" {
		return host
	}
	return host + "/" + path
}
