package gitserver

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Change is a changed reference, and the body of a webhook call. As in Git's hooks, Before is all zeros for a new reference, and After for a
// removed one.
type Change struct {
	Repository string `json:"repository"`
	Ref        string `json:"ref"`
	Before     string `json:"before"`
	After      string `json:"after"`
}

// SignatureHeader is the header with "sha256=" and the hexadecimal HMAC-SHA256 of the body with the webhook's secret.
const SignatureHeader = "X-Signature"

type webhook struct {
	client *http.Client
	log    *log.Logger
}

func newWebhook(logger *log.Logger) *webhook {
	return &webhook{client: &http.Client{Timeout: 10 * time.Second}, log: logger}
}

// notify calls the webhook once per change. It does so in the background, so that a slow or unreachable receiver does not delay the push.
func (h *webhook) notify(repository Repository, name string, changes []Change) {
	repository.Webhook = strings.ReplaceAll(repository.Webhook, "{name}", name)
	for _, change := range changes {
		change.Repository = name
		body, err := json.Marshal(change)
		if err != nil {
			h.log.Print(err)
			continue
		}
		go h.post(repository, body)
	}
}

func (h *webhook) post(repository Repository, body []byte) {
	request, err := http.NewRequest(http.MethodPost, repository.Webhook, bytes.NewReader(body))
	if err != nil {
		h.log.Printf("webhook: %v", err)
		return
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(SignatureHeader, "sha256="+sign(repository.WebhookSecret, body))
	response, err := h.client.Do(request)
	if err != nil {
		h.log.Printf("webhook: %v", err)
		return
	}
	defer response.Body.Close()
	h.log.Printf("webhook %s answered %s", repository.Webhook, response.Status)
}

func sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// changes compares references before and after a push.
func changes(before, after map[string]string) []Change {
	none := strings.Repeat("0", 40)
	refs := maps.Clone(before)
	if refs == nil {
		refs = map[string]string{}
	}
	maps.Copy(refs, after)
	var list []Change
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		change := Change{Ref: ref, Before: none, After: none}
		if object, there := before[ref]; there {
			change.Before = object
		}
		if object, there := after[ref]; there {
			change.After = object
		}
		if change.Before != change.After {
			list = append(list, change)
		}
	}
	return list
}
