package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
)

// signatures are the headers in which Git hosts put the HMAC-SHA256 of the body, in hex, some after "sha256=".
//
// Sources: GitHub's "Validating webhook deliveries"; Gitea's and Forgejo's "Webhooks"; Flux's receiver of type
// generic-hmac.
var signatures = []string{"X-Signature", "X-Hub-Signature-256", "X-Gitea-Signature", "X-Forgejo-Signature"}

// gitlabToken is the header in which GitLab sends the key itself.
const gitlabToken = "X-Gitlab-Token"

// signed reports whether the call proves knowledge of the key. Comparisons take the same time whatever is compared.
func signed(header http.Header, body, key []byte) bool {
	for _, name := range signatures {
		given := strings.TrimPrefix(header.Get(name), "sha256=")
		if given == "" {
			continue
		}
		mac, err := hex.DecodeString(given)
		return err == nil && hmac.Equal(mac, sign(body, key))
	}
	token := header.Get(gitlabToken)
	return token != "" && subtle.ConstantTimeCompare([]byte(token), key) == 1
}

func sign(body, key []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(body)
	return h.Sum(nil)
}
