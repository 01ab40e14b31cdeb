#include "route.h"

bool
route_find(const struct conf *conf, struct span model, unsigned wires, struct route *route_out)
{
	const struct conf_model *entry = conf_model(conf, model);

	for (size_t i = 0; entry != NULL && i < entry->ntargets; i++) {
		const struct conf_target *target = &entry->targets[i];

		if ((ROUTE_WIRE(conf->channels[target->channel].wire) & wires) == 0)
			continue;
		*route_out = (struct route){target->channel, target->model, entry};
		return true;
	}
	for (size_t i = 0; entry == NULL && i < conf->nchannels; i++) {
		const struct conf_channel *channel = &conf->channels[i];

		if ((ROUTE_WIRE(channel->wire) & wires) == 0 ||
		    !conf_serves(&channel->models, model))
			continue;
		*route_out = (struct route){i, model, NULL};
		return true;
	}
	return false;
}
