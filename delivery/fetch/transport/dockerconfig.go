package transport

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// registry is an entry in a .dockerconfigjson.
type registry struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// registries are the credentials of DockerConfig by host[:port][/path].
func (a Auth) registries() (map[string]registry, error) {
	if len(a.DockerConfig) == 0 {
		return nil, nil
	}
	var config struct {
		Auths map[string]registry `json:"auths"`
	}
	if err := json.Unmarshal(a.DockerConfig, &config); err != nil {
		return nil, failure.New(failure.ErrInvalid, ".dockerconfigjson of the Secret is not the JSON of a Docker configuration")
	}
	byPlace := make(map[string]registry, len(config.Auths))
	for key, entry := range config.Auths {
		if entry.Auth != "" {
			user, password, ok := decodeBasic(entry.Auth)
			if !ok {
				return nil, failure.New(failure.ErrInvalid, ".dockerconfigjson of the Secret: auth of %q is not base64 of user:password", failure.Printable(key))
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

// registryPlace is the host[:port][/path] of a key of a .dockerconfigjson, which may be a URL. Docker writes the version
// of its API behind the host, and for its Hub the URL of an old index: both mean the host.
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

// ForHost completes the credentials with those DockerConfig has for the longest beginning of host[:port][/path];
// explicit ones win. The second result is a refresh token.
func (a Auth) ForHost(place string) (Auth, string, error) {
	if !a.Anonymous() || len(a.DockerConfig) == 0 {
		return a, "", nil
	}
	byPlace, err := a.registries()
	if err != nil {
		return Auth{}, "", err
	}
	at := registryPlace(place)
	for {
		if entry, ok := byPlace[at]; ok {
			a.Username, a.Password, a.BearerToken = entry.Username, entry.Password, entry.RegistryToken
			return a, entry.IdentityToken, nil
		}
		cut := strings.LastIndex(at, "/")
		if cut < 0 {
			return a, "", nil
		}
		at = at[:cut]
	}
}
