package webhooks

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// Register registers the operations.
func (o *Operations) Register(api huma.API) {
	const maxBody = 16 << 10
	op := func(id, method, path, summary string, status int, errs ...int) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: "/v1/webhooks" + path, Summary: summary, DefaultStatus: status, Tags: []string{"Webhooks"}, Security: auth.Required, MaxBodyBytes: maxBody,
			Errors: problem.Statuses(append(errs, http.StatusForbidden)...)}
	}
	huma.Register(api, op("listWebhooks", http.MethodGet, "", "The webhooks that the caller may see, by id", http.StatusOK, http.StatusBadRequest), o.list)
	create := op("createWebhook", http.MethodPost, "", "A new webhook, whose secret is shown once", http.StatusCreated, http.StatusConflict)
	create.Description = "It receives messages about what happens, which are signed as Standard Webhooks says."
	huma.Register(api, create, o.create)
	get := op("getWebhook", http.MethodGet, "/{id}", "A webhook", http.StatusOK, http.StatusNotFound)
	get.Description = "With its ETag in If-Match, it is changed only if nobody changed it meanwhile."
	get.Responses = map[string]*huma.Response{"304": {Description: "The caller has the answer already, see If-None-Match."}}
	huma.Register(api, get, o.get)
	huma.Register(api, op("patchWebhook", http.MethodPatch, "/{id}", "Other fields for a webhook", http.StatusOK, http.StatusNotFound, http.StatusConflict), o.patch)
	huma.Register(api, op("deleteWebhook", http.MethodDelete, "/{id}", "The deletion of a webhook, and of what waits for it", http.StatusNoContent, http.StatusNotFound), o.remove)
	rotate := op("rotateWebhookSecret", http.MethodPost, "/{id}/rotate-secret", "A new secret, which is shown once", http.StatusOK, http.StatusNotFound, http.StatusConflict)
	rotate.Description = "For a time the secret that is replaced signs too, so that the receiver can change it meanwhile. The secret before that signs no more."
	huma.Register(api, rotate, o.rotate)
	huma.Register(api, op("pingWebhook", http.MethodPost, "/{id}/ping", "Send a message to try a webhook", http.StatusAccepted, http.StatusNotFound, http.StatusConflict), o.ping)
	huma.Register(api, op("listWebhookDeliveries", http.MethodGet, "/{id}/deliveries", "What was sent to a webhook, and what waits for it, the newest first", http.StatusOK, http.StatusBadRequest, http.StatusNotFound), o.deliveries)
	redeliver := op("redeliverToWebhook", http.MethodPost, "/{id}/deliveries/{delivery}/redeliver", "Send a message again, with the same id", http.StatusAccepted, http.StatusNotFound, http.StatusConflict)
	huma.Register(api, redeliver, o.redeliver)
}
