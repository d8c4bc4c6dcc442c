// Package webhooksign makes the secrets of webhooks, and signs messages as Standard Webhooks 1.0 says (https://www.standardwebhooks.com).
package webhooksign

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// prefix begins a secret, so that scanners recognize a published one.
	prefix = "whsec_"
	// secretBytes is the size of a new secret. Standard Webhooks allows 24 to 64.
	secretBytes = 32
)

// The headers of a message. HeaderOwn is for programs that verify the webhooks of Git hosts, in which the signature covers only the body.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
	HeaderOwn       = "X-KubeOP-Signature"
)

// NewSecret returns a new secret: whsec_ and the base64 of 32 random bytes.
func NewSecret() string {
	secret := make([]byte, secretBytes)
	rand.Read(secret) // It never fails, see its documentation.
	return prefix + base64.StdEncoding.EncodeToString(secret)
}

// Message is a message to sign.
type Message struct {
	// ID stays the same if the message is sent again. It has no dot.
	ID string
	// At is when the message is sent.
	At   time.Time
	Body []byte
}

// Sign sets the headers of a message. HeaderSignature has a signature by each secret, separated by spaces. HeaderOwn has only the signature by the
// last secret, because programs compare the whole header. While secrets are rotated, the last one is the old one. Errors never repeat a secret.
func (m Message) Sign(header http.Header, secrets ...string) error {
	seconds := strconv.FormatInt(m.At.Unix(), 10)
	var standard []string
	own := ""
	for i, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, prefix))
		if err != nil || !strings.HasPrefix(secret, prefix) || len(key) == 0 {
			return fmt.Errorf("secret %d of the webhook is not %s and base64", i+1, prefix)
		}
		standard = append(standard, "v1,"+base64.StdEncoding.EncodeToString(sum(key, m.ID+"."+seconds+".", m.Body)))
		own = "sha256=" + hex.EncodeToString(sum([]byte(secret), "", m.Body))
	}
	header.Set(HeaderID, m.ID)
	header.Set(HeaderTimestamp, seconds)
	header.Set(HeaderSignature, strings.Join(standard, " "))
	header.Set(HeaderOwn, own)
	return nil
}

func sum(key []byte, before string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(before))
	mac.Write(body)
	return mac.Sum(nil)
}
