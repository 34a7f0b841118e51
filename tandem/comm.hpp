// tandem/comm.hpp: the communication library, for its users.
#pragma once

#include "tandem/base/compiler.hpp"

#include "tandem/base/log.hpp"
#include "tandem/comm/bootstrap/join.hpp"
#include "tandem/comm/endpoint.hpp"
