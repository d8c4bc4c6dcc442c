package writes

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

type rollbackApp struct {
	AppPath
	Keyed
	Body struct {
		To string `json:"to,omitempty" pattern:"^[0-9a-f]{40}$" doc:"The commit of the app's history to return to. Default: the newest one that was delivered successfully before the present one."`
	}
}

func (in *rollbackApp) request() wanted {
	return wanted{Change: Change{How: Rollback, Of: in.object(), To: in.Body.To, DryRun: in.DryRun}, key: in.IdempotencyKey}
}

// registerRollback registers the only write that changes the folder of an app, and not just its file.
func registerRollback(k kind) {
	op := k.operation("rollbackApp", http.MethodPost, k.parent+k.one+"/rollback", "A commit that restores an app as it was at an earlier commit", http.StatusForbidden, http.StatusConflict)
	op.DefaultStatus = http.StatusAccepted
	op.Middlewares = huma.Middlewares{k.o.limit(k.api)}
	op.MaxBodyBytes = smallBody
	op.Description = "It restores the app's folder, and nothing else, as kubeop rollback does, and is checked as any write. If another commit has changed the app since the one that the operator applied or refused, the answer is 409. " +
		"An app whose content is in another Git repository is brought back there."
	k.mayDryRun(&op)
	huma.Register(k.api, op, func(ctx context.Context, in *rollbackApp) (*accepted, error) { return k.answer(ctx, in.request()) })
}
