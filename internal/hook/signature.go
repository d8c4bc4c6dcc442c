package hook

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"sync"
)

// signatures are the headers in which Git hosts send the HMAC-SHA256 of the body, in hex, some with the prefix "sha256=".
//
// Sources: GitHub's "Validating webhook deliveries"; Gitea's and Forgejo's "Webhooks"; Bitbucket's "Manage webhooks", for X-Hub-Signature; Flux's
// receiver of type generic-hmac. GitHub also sends X-Hub-Signature, with SHA-1.
var signatures = []string{"X-Signature", "X-Hub-Signature-256", "X-Gitea-Signature", "X-Forgejo-Signature", "X-Hub-Signature"}

// gitlabToken is the header in which GitLab sends the key itself. Others send it as Authorization: Azure DevOps as the password of basic
// authentication, registries such as Harbor as a bearer token or alone.
const gitlabToken = "X-Gitlab-Token"

// proof is the evidence that the caller knows the key: the HMAC of the body, or the key itself.
type proof struct{ mac, token []byte }

// proofOf returns the value of the first known header. It returns false if there is none, or if it cannot be valid for any key.
func proofOf(header http.Header) (proof, bool) {
	for _, name := range signatures {
		given := strings.TrimPrefix(header.Get(name), "sha256=")
		if given == "" {
			continue
		}
		mac, err := hex.DecodeString(given)
		return proof{mac: mac}, err == nil && len(mac) == sha256.Size
	}
	token := cmp.Or(header.Get(gitlabToken), tokenOf(header.Get("Authorization")))
	return proof{token: []byte(token)}, token != ""
}

// tokenOf returns the key in an Authorization header; "" if there is none.
func tokenOf(authorization string) string {
	scheme, value, two := strings.Cut(strings.TrimSpace(authorization), " ")
	switch {
	case !two:
		return scheme
	case strings.EqualFold(scheme, "Bearer"):
		return strings.TrimSpace(value)
	}
	request := http.Request{Header: http.Header{"Authorization": {authorization}}}
	_, password, _ := request.BasicAuth()
	return password
}

// pieces are buffers for reading bodies. Many bodies are read at once.
var pieces = sync.Pool{New: func() any { return new([8 << 10]byte) }}

// by reports whether the sender of this body knew the key. It is false without a key. Comparisons take constant time. The error is that of
// reading the body.
func (p proof) by(key []byte, body io.Reader) (bool, error) {
	if p.mac == nil {
		return p.isToken(key, body)
	}
	h := hmac.New(sha256.New, key)
	piece := pieces.Get().(*[8 << 10]byte)
	defer pieces.Put(piece)
	if _, err := io.CopyBuffer(h, body, piece[:]); err != nil {
		return false, err
	}
	return len(key) > 0 && hmac.Equal(p.mac, h.Sum(nil)), nil
}

// isToken reads the body of a valid call, because a Git host treats a call as failed if it is disconnected while it sends.
func (p proof) isToken(key []byte, body io.Reader) (bool, error) {
	if len(key) == 0 || subtle.ConstantTimeCompare(p.token, key) != 1 {
		return false, nil
	}
	_, err := io.Copy(io.Discard, body)
	return true, err
}
